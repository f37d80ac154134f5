/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of policies: which rules were added and removed, when, and by which process. An event
 * has room for TEXT_MOST bytes of rules and counts the rules that do not fit. A file has the whole
 * policy.
 */
#include <string.h>

#include "base/io.h"
#include "policy/describe.h"
#include "warden/net/net.h"

enum { TEXT_MOST = 20 * 1024 }; /* for the added rules, and for the removed rules */

struct list {
	struct trace *t;
	size_t left; /* bytes left */
	int more;    /* number of rules that did not fit */
};

static int put_rule(void *ctx, const struct policy_rule *r, struct str text)
{
	struct list *l = ctx;

	(void)r;
	if (text.n > l->left) {
		l->more++;
		return 0;
	}
	l->left -= text.n;
	trace_item(l->t, text);
	return 0;
}

static void put_rules(struct trace *t, const char *key, const char *key_more,
		      const struct policy *from, const struct policy *to)
{
	struct list l = { .t = t, .left = TEXT_MOST };

	trace_array(t, key);
	if (to)
		(void)policy_each_added(from, to, put_rule, &l);
	trace_array_end(t);
	if (l.more)
		trace_num(t, key_more, l.more);
}

static void put_content(struct net *n, struct str from, struct str to)
{
	auto_done(policy_free) struct policy *was = NULL, *is = NULL;
	struct trace *t = &n->w->trace;
	char hash[SHA256_HEX];

	if (net_policy_hash(n->w, hash))
		trace_text(t, "hash", str_of(hash));
	/* The gateway has decoded it, so this succeeds; only test gateways accept anything. */
	if (policy_decode(to, &is) < 0)
		return;
	if (from.n)
		(void)policy_decode(from, &was);
	trace_text(t, "name", is->name);
	trace_text(t, "default", is->def == POLICY_ACT_ALLOW ? STR("allow") : STR("deny"));
	trace_num(t, "rules", (int64_t)is->nrules);
	put_rules(t, "added", "added_more", was, is);
	if (was)
		put_rules(t, "removed", "removed_more", is, was);
}

int net_policy_note(struct net *n, struct str from, struct str to, const struct who *who)
{
	struct trace *t = &n->w->trace;
	int r = io_replace_file(n->w->dir_fd, "policy.new", "policy", to);

	(void)trace_begin(t, "policy.set", 0, n->w->created_event);
	who_trace(t, who);
	put_content(n, from, to);
	/* The gateway obeys the policy anyway; record that the file still has the last one. */
	if (r < 0)
		trace_text(t, "not_kept", str_of(strerror(-r)));
	return warden_trace_end(n->w);
}
