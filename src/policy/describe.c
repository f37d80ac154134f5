/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/safe.h"
#include "policy/format.h"

/* Appends until an error occurs; then `r` holds the error. */
struct describer {
	struct buf *out;
	int r;
};

static void put(struct describer *d, struct str text)
{
	if (d->r == 0)
		d->r = buf_add_str(d->out, text);
}

static void put_c(struct describer *d, const char *text)
{
	put(d, str_of(text));
}

static void put_number(struct describer *d, uint64_t n)
{
	if (d->r == 0)
		d->r = buf_printf(d->out, "%" PRIu64, n);
}

static void put_id(struct describer *d, struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		put(d, id.p[i] == '/' ? STR(".") : (struct str){ id.p + i, 1 });
}

/* `, key: [` before the first item, `, ` before the others. */
static void put_between(struct describer *d, const char *key, size_t i)
{
	put_c(d, ", ");
	if (i > 0)
		return;
	put_c(d, key);
	put_c(d, ": [");
}

/* Patterns, methods and paths have no quotes or backslashes: the compiler refuses them. */
static void put_texts(struct describer *d, const char *key, const struct str *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_between(d, key, i);
		put_c(d, "\"");
		put(d, items[i]);
		put_c(d, "\"");
	}
	if (n)
		put_c(d, "]");
}

static void put_addresses(struct describer *d, const struct policy_rule *r)
{
	char text[CIDR_TEXT];

	for (size_t i = 0; i < r->naddresses; i++) {
		put_between(d, "addresses", i);
		cidr_text(&r->addresses[i], text);
		put_c(d, "\"");
		put_c(d, text);
		put_c(d, "\"");
	}
	if (r->naddresses)
		put_c(d, "]");
}

static void put_ports(struct describer *d, const struct policy_rule *r)
{
	for (size_t i = 0; i < r->nports; i++) {
		put_between(d, "ports", i);
		put_number(d, r->ports[i].first);
		if (r->ports[i].last == r->ports[i].first)
			continue;
		put_c(d, "-");
		put_number(d, r->ports[i].last);
	}
	if (r->nports)
		put_c(d, "]");
	else if (r->action == POLICY_ACT_ALLOW) /* a document without ports means 80 and 443 */
		put_c(d, ", ports: [1-65535]");
}

static void put_protocols(struct describer *d, unsigned set)
{
	static const enum policy_proto all[] = { PROTO_TLS, PROTO_HTTP, PROTO_SSH, PROTO_TCP };
	size_t n = 0;

	if (set == PROTO_ANY) {
		put_c(d, ", protocol: any");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!(set & all[i]))
			continue;
		put_between(d, "protocol", n++);
		put_c(d, policy_proto_name(all[i]));
	}
	if (n)
		put_c(d, "]");
}

static void put_lenient(struct describer *d, unsigned set)
{
	static const char *const names[] = { "mismatch", "missing", "ech" };
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!(set & 1u << i))
			continue;
		put_c(d, any ? ", " : ", tls: {");
		put_c(d, names[i]);
		put_c(d, ": true");
		any = true;
	}
	if (any)
		put_c(d, "}");
}

/* `before` comes before the braces; writes nothing if there is no limit. */
static void put_limits(struct describer *d, const char *before, const struct policy_limits *l)
{
	bool any = false;

#define X(tag, member, rule) \
	if (l->member) { \
		put_c(d, any ? ", " : before); \
		put_c(d, any ? "" : "limits: {"); \
		put_c(d, #member ": "); \
		put_number(d, l->member); \
		any = true; \
	}
	POLICY_LIMITS(X)
#undef X
	if (any)
		put_c(d, "}");
}

static const char *action_name(enum policy_action a)
{
	return a == POLICY_ACT_ALLOW ? "allow" : "deny";
}

static int describe_rule(const struct policy_rule *r, bool with_id, struct buf *out)
{
	struct describer d = { .out = out };

	put_c(&d, "{");
	if (with_id) {
		put_c(&d, "id: ");
		put_id(&d, r->id);
		put_c(&d, ", ");
	}
	put_c(&d, "action: ");
	put_c(&d, action_name(r->action));
	put_texts(&d, "hosts", r->hosts, r->nhosts);
	put_addresses(&d, r);
	put_ports(&d, r);
	put_protocols(&d, r->protocols);
	put_texts(&d, "methods", r->methods, r->nmethods);
	put_texts(&d, "paths", r->paths, r->npaths);
	put_lenient(&d, r->lenient);
	put_limits(&d, ", ", &r->limits);
	put_c(&d, "}");
	return d.r;
}

int policy_describe_rule(const struct policy_rule *r, struct buf *out)
{
	return describe_rule(r, true, out);
}

/* A file name may contain any byte. */
static void put_comment(struct describer *d, const char *before, struct str text)
{
	put_c(d, before);
	if (d->r == 0)
		d->r = text_safe(d->out, text);
	put_c(d, "\n");
}

int policy_describe(const struct policy *p, struct buf *out)
{
	struct describer d = { .out = out };
	bool limited = false;

#define X(tag, member, rule) limited |= p->limits.member != 0;
	POLICY_LIMITS(X)
#undef X
	put_comment(&d, "# policy ", p->name);
	put_c(&d, "version: 1\ndefault: ");
	put_c(&d, action_name(p->def));
	put_c(&d, "\n");
	put_limits(&d, "", &p->limits);
	put_c(&d, limited ? "\n" : "");
	put_c(&d, p->nrules ? "rules:\n" : "rules: []\n");
	for (size_t i = 0; i < p->nrules && d.r == 0; i++) {
		put_c(&d, "- ");
		if (d.r == 0)
			d.r = policy_describe_rule(&p->rules[i], out);
		put_comment(&d, "  # ", p->rules[i].origin);
	}
	return d.r;
}

/* Rules of --allow and --deny have numbered ids, which change with their neighbours. */
static bool is_counted(struct str id)
{
	return str_starts(id, STR("cli/"));
}

/* Writes the identity of each rule, each between two newlines. */
static int key_lines(const struct policy *p, struct buf *out)
{
	int r = buf_add_c(out, "\n");

	for (size_t i = 0; p && i < p->nrules && r == 0; i++) {
		r = describe_rule(&p->rules[i], !is_counted(p->rules[i].id), out);
		if (r == 0)
			r = buf_add_c(out, "\n");
	}
	return r;
}

int policy_each_added(const struct policy *from, const struct policy *to,
		      int (*fn)(void *ctx, const struct policy_rule *r, struct str text), void *ctx)
{
	auto_done(buf_done) struct buf line = BUF_INIT(LIMIT_POLICY_DESCRIBED);
	auto_done(buf_done) struct buf old = BUF_INIT(LIMIT_POLICY_DESCRIBED);
	int r = key_lines(from, &old);

	for (size_t i = 0; i < to->nrules && r == 0; i++) {
		struct policy one = { .rules = &to->rules[i], .nrules = 1 };

		buf_clear(&line);
		r = key_lines(&one, &line);
		if (r < 0 || memmem(old.data, old.len, line.data, line.len))
			continue;
		buf_clear(&line);
		r = policy_describe_rule(one.rules, &line);
		if (r == 0)
			r = fn(ctx, one.rules, buf_str(&line));
	}
	return r;
}
