/* SPDX-License-Identifier: Apache-2.0 */
/* Decide by the rules and what is known; policy.h explains how. */
#include "policy/address.h"
#include "policy/path.h"
#include "policy/policy.h"
#include "wire/glob.h"

enum match { NO, MAYBE, YES };

/* A rule judged against a query: the worst result of its parts. */
struct judged {
	enum match match;
	unsigned needs;
	enum policy_reason
		why_not; /* for NO, the reason if it should be reported; else REASON_DEFAULT */
};

static void judge(struct judged *j, enum match m, unsigned needs)
{
	if (m < j->match)
		j->match = m;
	if (m == MAYBE)
		j->needs |= needs;
}

static void judge_name(const struct policy_rule *r, const struct policy_query *q, struct judged *j)
{
	enum match m = NO;

	if (r->nhosts == 0) {
		/*
		 * An allowed range does not allow names. Otherwise every name would have to be
		 * looked up, and a lookup can carry data out. A denied range applies to both.
		 */
		judge(j, r->action == POLICY_ACT_ALLOW && q->name.n ? NO : YES, 0);
		return;
	}
	for (size_t i = 0; i < r->nhosts && m == NO; i++)
		m = glob_host(r->hosts[i], q->name) ? YES : NO;
	judge(j, m, 0);
}

static bool names_address(const struct policy_rule *r, const struct ip *addr)
{
	for (size_t i = 0; i < r->naddresses; i++)
		if (r->action == POLICY_ACT_ALLOW ? address_opened_by(addr, &r->addresses[i])
						  : cidr_has(&r->addresses[i], addr))
			return true;
	return false;
}

static void judge_address(const struct policy_rule *r, const struct policy_query *q,
			  struct judged *j)
{
	struct ip addr = ip_plain(q->addr);
	bool open = !addr.len || address_classify(&addr).class == ADDRESS_GLOBAL;

	if (r->naddresses) {
		if (!addr.len)
			judge(j, MAYBE, POLICY_NEEDS_ADDR);
		else
			judge(j, names_address(r, &addr) ? YES : NO, 0);
	} else if (r->action == POLICY_ACT_ALLOW && !open) {
		judge(j, NO, 0);
	}
	if (!open && j->match == NO && r->action == POLICY_ACT_ALLOW)
		j->why_not = REASON_ADDRESS;
}

static void judge_port(const struct policy_rule *r, const struct policy_query *q, struct judged *j)
{
	enum match m = r->nports ? NO : YES;

	if (q->port == 0 && r->nports)
		m = MAYBE;
	for (size_t i = 0; i < r->nports && m == NO; i++)
		if (q->port >= r->ports[i].first && q->port <= r->ports[i].last)
			m = YES;
	judge(j, m, POLICY_NEEDS_PORT);
}

static void judge_proto(const struct policy_rule *r, const struct policy_query *q, struct judged *j)
{
	unsigned set = policy_protocols(r, q->port);

	/* Any protocol is TCP. */
	if (set & PROTO_TCP)
		return;
	if (q->proto == PROTO_UNKNOWN)
		judge(j, MAYBE, POLICY_NEEDS_PROTO);
	else
		judge(j, set & q->proto ? YES : NO, 0);
}

static bool has_method(const struct policy_rule *r, struct str method)
{
	for (size_t i = 0; i < r->nmethods; i++)
		if (str_eq(r->methods[i], method))
			return true;
	return r->nmethods == 0;
}

static void judge_path(const struct policy_rule *r, const struct policy_query *q, struct judged *j)
{
	bool plain = path_is_plain(q->path);

	for (size_t i = 0; i < r->npaths; i++) {
		if (str_is(r->paths[i], "/**"))
			return;
		if (plain && glob_path(r->paths[i], q->path))
			return;
	}
	/* A path that servers may read differently matches no allow rule and every deny rule. */
	if (!plain && r->action == POLICY_ACT_DENY)
		return;
	judge(j, NO, 0);
	if (!plain)
		j->why_not = REASON_PATH;
}

static void judge_request(const struct policy_rule *r, const struct policy_query *q,
			  struct judged *j)
{
	if (r->nmethods == 0 && r->npaths == 0)
		return;
	if (!q->has_request) {
		judge(j, MAYBE, POLICY_NEEDS_REQUEST);
		return;
	}
	if (!has_method(r, q->method))
		judge(j, NO, 0);
	else if (r->npaths && j->match != NO)
		judge_path(r, q, j);
}

static struct judged judge_rule(const struct policy_rule *r, const struct policy_query *q)
{
	struct judged j = { .match = YES, .why_not = REASON_DEFAULT };

	judge_name(r, q, &j);
	judge_port(r, q, &j);
	judge_proto(r, q, &j);
	if (j.match != NO)
		judge_address(r, q, &j);
	if (j.match != NO)
		judge_request(r, q, &j);
	return j;
}

unsigned policy_protocols(const struct policy_rule *r, uint16_t port)
{
	if (r->protocols)
		return r->protocols;
	if (r->action == POLICY_ACT_DENY)
		return PROTO_ANY;
	switch (port) {
	case 22:
		return PROTO_SSH;
	case 80:
		return PROTO_HTTP;
	case 443:
		return PROTO_TLS;
	default:
		return PROTO_ANY;
	}
}

/* RFC 6761 6.3: whatever a resolver or rule says, this is the local machine. */
static bool is_localhost(struct str name)
{
	static const struct str local = STR("localhost");

	if (name.n < local.n || memcmp(name.p + name.n - local.n, local.p, local.n) != 0)
		return false;
	return name.n == local.n || name.p[name.n - local.n - 1] == '.';
}

/* What no rule can open. */
static bool deny_always(const struct policy_query *q, struct policy_verdict *v)
{
	if (is_localhost(q->name))
		v->reason = REASON_NAME;
	else if (q->addr.len && address_classify(&q->addr).class == ADDRESS_NEVER)
		v->reason = REASON_NEVER;
	else
		return false;
	v->kind = POLICY_DENY;
	v->rule = NULL;
	return true;
}

static bool host_differs(const struct policy_query *q)
{
	return !str_eq(q->host, q->name) || (q->host_port && q->host_port != q->port);
}

static bool tls_differs(const struct policy_query *q, unsigned lenient, enum policy_reason *ret)
{
	if (q->bad_hello)
		*ret = REASON_HELLO;
	else if (q->ech && !(lenient & LENIENT_ECH))
		*ret = REASON_ECH;
	else if (!q->has_sni && !(lenient & LENIENT_SNI_MISSING))
		*ret = REASON_SNI_MISSING;
	else if (q->has_sni && !str_eq(q->sni, q->name) && !(lenient & LENIENT_SNI_MISMATCH))
		*ret = REASON_SNI_MISMATCH;
	else
		return false;
	return true;
}

/*
 * The rule allows the connection: check that the client's own claim agrees. A connection without a
 * name has nothing to compare; its address was allowed as such.
 */
static void check_evidence(const struct policy_query *q, struct policy_verdict *v)
{
	unsigned set = v->rule ? policy_protocols(v->rule, q->port) : PROTO_ANY;
	unsigned lenient = v->rule ? v->rule->lenient : 0;

	v->inspect = INSPECT_NONE;
	if (set == PROTO_TCP)
		return;
	if (q->proto == PROTO_UNKNOWN) {
		v->inspect = INSPECT_MAY;
	} else if (q->proto == PROTO_TLS && q->name.n && tls_differs(q, lenient, &v->reason)) {
		v->kind = POLICY_DENY;
	} else if (q->proto == PROTO_HTTP && !q->has_request) {
		v->inspect = INSPECT_MUST;
	} else if (q->proto == PROTO_HTTP && q->name.n && host_differs(q)) {
		v->kind = POLICY_DENY;
		v->reason = REASON_HOST_MISMATCH;
	}
}

/* No rule matches. An address that is not global needs a rule, whatever the default. */
static void decide_default(const struct policy *p, const struct policy_query *q,
			   struct policy_verdict *v)
{
	if (v->reason == REASON_DEFAULT && q->addr.len &&
	    address_classify(&q->addr).class != ADDRESS_GLOBAL)
		v->reason = REASON_ADDRESS;
	if (p->def == POLICY_ACT_DENY || v->reason == REASON_ADDRESS) {
		v->kind = POLICY_DENY;
		return;
	}
	v->kind = POLICY_ALLOW;
	v->rule = NULL;
	v->reason = REASON_DEFAULT;
}

/*
 * Opaque bytes may be a request that only their server can read. A deny rule for requests might
 * apply to it, so judge that rule as if the bytes were a request.
 */
static enum match denies_opaque(const struct policy_rule *r, const struct policy_query *q,
				unsigned *ret_needs)
{
	struct policy_query http = *q;
	unsigned set = policy_protocols(r, q->port);
	struct judged j;

	if (q->proto != PROTO_TCP || q->silent || r->action != POLICY_ACT_DENY ||
	    (set & PROTO_TCP) || !(set & PROTO_HTTP))
		return NO;
	http.proto = PROTO_HTTP;
	http.has_request = false;
	j = judge_rule(r, &http);
	*ret_needs = j.needs & ~(unsigned)POLICY_NEEDS_REQUEST;
	if (j.match == NO)
		return NO;
	return *ret_needs ? MAYBE : YES;
}

/* The results of the rules in order, up to the first that decides. */
struct asked {
	const struct policy_rule *decider,
		*opaque; /* opaque: a deny rule for requests that might apply */
	bool waits, can_allow;
};

static void ask_rule(const struct policy_rule *r, const struct policy_query *q, struct asked *a,
		     struct policy_verdict *v)
{
	struct judged j = judge_rule(r, q);
	unsigned needs = 0;
	enum match opaque = denies_opaque(r, q, &needs);

	if (opaque == YES && !a->opaque)
		a->opaque = r;
	if (opaque == MAYBE) {
		a->waits = true;
		v->needs |= needs;
	}
	if (j.match == YES) {
		a->decider = r;
	} else if (j.match == MAYBE) {
		a->waits = true;
		v->needs |= j.needs;
		a->can_allow |= r->action == POLICY_ACT_ALLOW;
	} else if (j.why_not != REASON_DEFAULT && !v->rule) {
		v->reason = j.why_not;
		v->rule = r;
	}
}

void policy_decide(const struct policy *p, const struct policy_query *q, struct policy_verdict *ret)
{
	struct policy_verdict v = { .reason = REASON_DEFAULT };
	struct asked a = { 0 };

	for (size_t i = 0; i < p->nrules && !a.decider; i++)
		ask_rule(&p->rules[i], q, &a, &v);
	if (a.decider) {
		v.rule = a.decider;
		v.reason = REASON_RULE;
		v.kind = a.decider->action == POLICY_ACT_ALLOW ? POLICY_ALLOW : POLICY_DENY;
	} else {
		decide_default(p, q, &v);
	}
	if (v.kind == POLICY_ALLOW && a.opaque) {
		v.kind = POLICY_DENY;
		v.rule = a.opaque;
		v.reason = REASON_OPAQUE;
	}
	if (deny_always(q, &v))
		v.needs = 0;
	else if (a.waits && (v.kind == POLICY_ALLOW || a.can_allow)) {
		v.kind = POLICY_PENDING;
		v.inspect = v.needs & ~(unsigned)POLICY_NEEDS_ADDR ? INSPECT_MUST : INSPECT_MAY;
	} else if (v.kind == POLICY_ALLOW)
		check_evidence(q, &v);
	*ret = v;
}
