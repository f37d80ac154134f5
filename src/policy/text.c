/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions in words. */
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "policy/policy.h"

static const struct {
	const char *name, *text;
} reasons[] = {
	[REASON_RULE] = { "rule", "a rule says so" },
	[REASON_DEFAULT] = { "default", "no rule matches" },
	[REASON_NAME] = { "localhost", "localhost is never reached through the gateway" },
	[REASON_ADDRESS] = { "address", "the address is not a global one, and no rule names it" },
	[REASON_NEVER] = { "never", "this address is never dialled" },
	[REASON_SNI_MISMATCH] = { "sni_mismatch", "the server name in TLS is another one" },
	[REASON_SNI_MISSING] = { "sni_missing", "there is no server name in TLS" },
	[REASON_ECH] = { "ech", "the server name in TLS is encrypted" },
	[REASON_HELLO] = { "tls_hello", "the TLS hello is malformed" },
	[REASON_HOST_MISMATCH] = { "host_mismatch", "the Host of the request is another one" },
	[REASON_PATH] = { "path", "servers read this path differently" },
	[REASON_OPAQUE] = { "opaque",
			    "it is not readable as HTTP, and this rule denies some requests there" },
};

const char *policy_reason_text(enum policy_reason reason)
{
	return reason < ARRAY_LEN(reasons) ? reasons[reason].text : "";
}

const char *policy_reason_name(enum policy_reason reason)
{
	return reason < ARRAY_LEN(reasons) ? reasons[reason].name : "";
}

const char *policy_proto_name(enum policy_proto proto)
{
	switch (proto) {
	case PROTO_TLS:
		return "tls";
	case PROTO_HTTP:
		return "http";
	case PROTO_SSH:
		return "ssh";
	case PROTO_TCP:
		return "tcp";
	case PROTO_ANY:
		return "any";
	case PROTO_UNKNOWN:
		break;
	}
	return "unknown";
}

struct str policy_rule_id(const struct policy_verdict *v)
{
	return v->rule ? v->rule->id : STR("default");
}

/*
 * Text of fixed size; it becomes empty if something does not fit, because half a rule is useless.
 */
struct line {
	char *out;
	size_t n;
	bool full;
};

static __attribute__((format(printf, 2, 3))) void line_add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->out + l->n, POLICY_FIX - l->n, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= POLICY_FIX - l->n)
		l->full = true;
	else
		l->n += (size_t)n;
}

static void add_target(struct line *l, const struct policy_query *q, enum policy_reason reason)
{
	enum { ID_PART = 48 };
	char ip[IP_TEXT];
	struct ip addr = ip_plain(q->addr);

	ip_text(&addr, ip);
	if (q->name.n)
		line_add(l, "- {id: allow-%.*s, hosts: [%.*s]",
			 (int)(q->name.n < ID_PART ? q->name.n : ID_PART), q->name.p,
			 STR_ARG(q->name));
	else
		line_add(l, "- {id: allow-%s", addr.len == 16 ? "address" : ip);
	if (!q->name.n || reason == REASON_ADDRESS)
		line_add(l, ", addresses: [\"%s\"]", ip);
}

static void add_protocol(struct line *l, const struct policy_query *q)
{
	const struct policy_rule plain = { .action = POLICY_ACT_ALLOW };

	if (q->proto != PROTO_UNKNOWN && !(policy_protocols(&plain, q->port) & q->proto))
		line_add(l, ", protocol: %s", policy_proto_name(q->proto));
}

static bool can_be_allowed(const struct policy_query *q, const struct policy_verdict *v)
{
	if (v->kind != POLICY_DENY || v->reason == REASON_NAME || v->reason == REASON_NEVER ||
	    v->reason == REASON_HOST_MISMATCH || v->reason == REASON_PATH ||
	    v->reason == REASON_HELLO || v->reason == REASON_OPAQUE)
		return false;
	return q->name.n || q->addr.len;
}

void policy_fix(const struct policy_query *q, const struct policy_verdict *v, char out[POLICY_FIX])
{
	struct line l = { .out = out };

	out[0] = '\0';
	if (!can_be_allowed(q, v))
		return;
	add_target(&l, q, v->reason);
	if (q->port)
		line_add(&l, ", ports: [%u]", q->port);
	add_protocol(&l, q);
	if (v->reason == REASON_SNI_MISMATCH)
		line_add(&l, ", tls: {mismatch: true}");
	else if (v->reason == REASON_SNI_MISSING)
		line_add(&l, ", tls: {missing: true}");
	else if (v->reason == REASON_ECH)
		line_add(&l, ", tls: {ech: true%s}",
			 q->has_sni && !str_eq(q->sni, q->name) ? ", mismatch: true" : "");
	line_add(&l, "}");
	if (l.full)
		out[0] = '\0';
}
