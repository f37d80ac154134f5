/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of policies: which rules came and went, when, and who asked. An event has room for
 * TEXT_MOST bytes of rules; those that do not fit are counted. The whole policy is in a file.
 */
#include <string.h>

#include "base/io.h"
#include "policy/describe.h"
#include "warden/net/net.h"

enum { TEXT_MOST = 20 * 1024 }; /* of the added, and of the removed rules */

struct list {
	struct trace *t;
	size_t left; /* room */
	int more;    /* did not fit */
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
	/* What the gateway could read, we can; tests have gateways that read anything. */
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
	/* The gateway obeys it all the same: the record must not claim the last one. */
	if (r < 0)
		trace_text(t, "not_kept", str_of(strerror(-r)));
	return warden_trace_end(n->w);
}
