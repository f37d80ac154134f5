/* SPDX-License-Identifier: Apache-2.0 */
/* A rule of a document. */
#include "policy/compile_rule.h"

#include <stdio.h>

#include "policy/format.h"
#include "policy/path.h"
#include "wire/frame.h"
#include "wire/host.h"

enum { SHOWN = 64 };
#define SHOW(s) (int)((s).n < SHOWN ? (s).n : SHOWN), (s).p

enum rule_key {
	K_ID,
	K_ACTION,
	K_HOSTS,
	K_ADDRESSES,
	K_PORTS,
	K_PROTOCOL,
	K_METHODS,
	K_PATHS,
	K_TLS,
	K_LIMITS,
	K_COUNT
};
static const char *const rule_keys[] = { "id",	     "action",	"hosts", "addresses", "ports",
					 "protocol", "methods", "paths", "tls",	      "limits" };
static const char *const actions[] = { "deny", "allow" };

/* Report a failure: a mistake in the document, or a full buffer. */
static int item_failed(struct compile *c, const struct node *n, int r, const char *why)
{
	struct str text = doc_text(c->d, n);

	if (r == -EINVAL)
		return compile_fail(c, n, "'%.*s' %s", SHOW(text), why);
	if (r == -E2BIG || r == -EMSGSIZE)
		return compile_fail(c, n, "the policy is too large");
	return err_sys(c->e, -r, "reading a policy");
}

static int take_host(struct compile *c, const struct node *n, void *ctx)
{
	const char *why = "";
	int r = draft_host(ctx, doc_text(c->d, n), &why);

	return r < 0 ? item_failed(c, n, r, why) : 0;
}

static int take_address(struct compile *c, const struct node *n, void *ctx)
{
	const char *why = "";
	int r = draft_address(ctx, doc_text(c->d, n), &why);

	return r < 0 ? item_failed(c, n, r, why) : 0;
}

static int take_port(struct compile *c, const struct node *n, void *ctx)
{
	struct str text = doc_text(c->d, n);
	const char *dash = text.n ? memchr(text.p, '-', text.n) : NULL;
	size_t len = dash ? (size_t)(dash - text.p) : text.n;
	uint16_t first, last;
	int r;

	if (port_parse((struct str){ text.p, len }, &first) < 0 ||
	    port_parse(dash ? (struct str){ dash + 1, text.n - len - 1 } : text, &last) < 0 ||
	    first > last)
		return item_failed(c, n, -EINVAL,
				   "is not a port like 443 or a range like 8000-8100");
	r = draft_ports(ctx, first, last);
	return r < 0 ? item_failed(c, n, r, "") : 0;
}

static int take_protocol(struct compile *c, const struct node *n, void *ctx)
{
	static const char *const names[] = { "tls", "http", "ssh", "tcp", "any" };
	static const unsigned bits[] = { PROTO_TLS, PROTO_HTTP, PROTO_SSH, PROTO_TCP, PROTO_ANY };
	struct draft *r = ctx;
	int i = compile_word(c, n, "protocol", names, ARRAY_LEN(names));

	if (i < 0)
		return -1;
	r->protocols |= bits[i];
	return 0;
}

static int take_method(struct compile *c, const struct node *n, void *ctx)
{
	struct str text = doc_text(c->d, n);
	struct draft *r = ctx;
	int ret;

	for (size_t i = 0; i < text.n; i++)
		if (!(text.p[i] >= 'A' && text.p[i] <= 'Z') && text.p[i] != '-')
			text.n = 0;
	if (text.n == 0 || text.n > LIMIT_NAME)
		return item_failed(c, n, -EINVAL, "is not a method like GET, in capitals");
	ret = field_put(&r->methods, R_METHOD, text);
	return ret < 0 ? item_failed(c, n, ret, "") : 0;
}

/* '**' must be a whole segment. */
static bool stars_ok(struct str path)
{
	for (size_t i = 1; i + 1 < path.n; i++)
		if (path.p[i] == '*' && path.p[i + 1] == '*' &&
		    (path.p[i - 1] != '/' || (i + 2 < path.n && path.p[i + 2] != '/')))
			return false;
	return true;
}

static int take_path(struct compile *c, const struct node *n, void *ctx)
{
	struct str text = doc_text(c->d, n);
	struct draft *r = ctx;
	int ret;

	if (!path_is_plain(text) || text.n >= LIMIT_PATH)
		return item_failed(c, n, -EINVAL,
				   "is not a plain path like /simple/**: no //, . or .., no "
				   "encoding of what needs none");
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '?' || text.p[i] == '#')
			return item_failed(c, n, -EINVAL,
					   "has a byte that no path has; queries are not matched");
	if (!stars_ok(text))
		return item_failed(c, n, -EINVAL, "has '**' that is not a whole segment");
	ret = field_put(&r->paths, R_PATH, text);
	return ret < 0 ? item_failed(c, n, ret, "") : 0;
}

static int take_tls(struct compile *c, const struct node *map, struct draft *r)
{
	static const char *const names[] = { "mismatch", "missing", "ech" };
	static const char *const words[] = { "false", "true" };
	const struct node *at[ARRAY_LEN(names)];

	if (compile_map(c, map, names, ARRAY_LEN(names), at) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int on = at[i] ? compile_word(c, at[i], "value", words, ARRAY_LEN(words)) : 0;

		if (on < 0)
			return -1;
		r->lenient |= (unsigned)on << i;
	}
	_Static_assert(LENIENT_SNI_MISMATCH == 1 && LENIENT_SNI_MISSING == 2 && LENIENT_ECH == 4,
		       "bits in the order of the keys");
	return 0;
}

static bool id_ok(struct str id)
{
	for (size_t i = 0; i < id.n; i++) {
		char ch = id.p[i];

		if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
		      (ch >= '0' && ch <= '9') || ch == '-' || ch == '_' || ch == '.'))
			return false;
	}
	return id.n > 0;
}

static int take_id(struct compile *c, const struct node *n, unsigned number, struct draft *r)
{
	int len;

	if (!n)
		len = snprintf(r->id, sizeof r->id, "%srule-%u", c->prefix, number);
	else if (n->kind != NODE_TEXT || !id_ok(doc_text(c->d, n)))
		return compile_fail(c, n, "an id may have only letters, digits, '-', '_' and '.'");
	else
		len = snprintf(r->id, sizeof r->id, "%s%.*s", c->prefix,
			       STR_ARG(doc_text(c->d, n)));
	if (len < 0 || (size_t)len >= sizeof r->id)
		return compile_fail(c, n, "an id has at most %d bytes", LIMIT_NAME);
	return 0;
}

static int take_action(struct compile *c, const struct node *map, const struct node *n,
		       bool needs_action, struct draft *r)
{
	int i;

	if (!n && needs_action)
		return compile_fail(c, map,
				    "with the default 'allow', each rule needs an 'action'");
	i = n ? compile_word(c, n, "action", actions, ARRAY_LEN(actions)) : POLICY_ACT_ALLOW;
	r->action = i == POLICY_ACT_ALLOW ? POLICY_ACT_ALLOW : POLICY_ACT_DENY;
	return i < 0 ? -1 : 0;
}

static int take_lists(struct compile *c, const struct node *const at[K_COUNT], struct draft *r)
{
	static const struct {
		enum rule_key key;
		int (*take)(struct compile *c, const struct node *item, void *ctx);
	} lists[] = {
		{ K_HOSTS, take_host },	    { K_ADDRESSES, take_address },
		{ K_PORTS, take_port },	    { K_PROTOCOL, take_protocol },
		{ K_METHODS, take_method }, { K_PATHS, take_path },
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		enum rule_key k = lists[i].key;

		if (at[k] && compile_items(c, at[k], rule_keys[k], lists[i].take, r) < 0)
			return -1;
	}
	return 0;
}

int compile_rule(struct compile *c, const struct node *map, unsigned number, bool needs_action,
		 struct buf *out)
{
	auto_done(draft_done) struct draft r;
	const struct node *at[K_COUNT];
	const char *why = "";
	int ret;

	draft_init(&r);
	if (compile_map(c, map, rule_keys, K_COUNT, at) < 0 ||
	    take_id(c, at[K_ID], number, &r) < 0 ||
	    take_action(c, map, at[K_ACTION], needs_action, &r) < 0 || take_lists(c, at, &r) < 0)
		return -1;
	if ((at[K_TLS] && take_tls(c, at[K_TLS], &r) < 0) ||
	    (at[K_LIMITS] && compile_limits(c, at[K_LIMITS], true, &r.limits) < 0))
		return -1;
	if (c->origin)
		(void)snprintf(r.origin, sizeof r.origin, "%s", c->origin);
	else if (map->line)
		(void)snprintf(r.origin, sizeof r.origin, "%s:%u", c->d->file, map->line);
	else
		(void)snprintf(r.origin, sizeof r.origin, "%s", c->d->file);
	ret = draft_put(&r, out, &why);
	if (ret == -EINVAL)
		return compile_fail(c, map, "%s", why);
	return ret < 0 ? item_failed(c, map, ret, "") : 0;
}
