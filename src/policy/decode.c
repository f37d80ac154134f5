/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decode the compiled form. It comes from `cay` through the warden, but a gateway trusts no sizes:
 * one pass counts, one allocation follows, a second pass fills it.
 */
#include <errno.h>

#include "policy/format.h"
#include "policy/policy.h"
#include "wire/frame.h"
#include "wire/glob.h"

enum { ID_MAX = LIMIT_NAME, ORIGIN_MAX = 512 };

/* The number of each item; then the position of the next. */
struct tally {
	size_t rules, strs, cidrs, ports;
};

struct room {
	struct policy_rule *rules;
	struct str *strs;
	struct cidr *cidrs;
	struct port_range *ports;
};

static int count_rule(struct str body, struct tally *t)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		t->strs += f.tag == R_HOST || f.tag == R_METHOD || f.tag == R_PATH;
		t->cidrs += f.tag == R_ADDRESS;
		t->ports += f.tag == R_PORTS;
	}
	return r;
}

static int count_all(struct str body, struct tally *t)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		if (f.tag != P_RULE)
			continue;
		if (++t->rules > LIMIT_POLICY_RULES)
			return -E2BIG;
		r = count_rule(f.value, t);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_u64(struct field f, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (field_u64(f, &v) < 0 || v > max)
		return -EBADMSG;
	*ret = v;
	return 0;
}

static int take_unsigned(struct field f, unsigned max, unsigned *ret)
{
	uint64_t v = 0;
	int r = take_u64(f, max, &v);

	*ret = (unsigned)v;
	return r;
}

static int take_action(struct field f, enum policy_action *ret)
{
	unsigned v;
	int r = take_unsigned(f, POLICY_ACT_ALLOW, &v);

	*ret = v ? POLICY_ACT_ALLOW : POLICY_ACT_DENY;
	return r;
}

static int take_limits(struct str body, struct policy_limits *l, bool of_rule)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		switch (f.tag) {
#define X(tag_, member, rule) \
	case tag_: \
		r = of_rule && !(rule) ? -EBADMSG : take_u64(f, INT64_MAX, &l->member); \
		break;
			POLICY_LIMITS(X)
#undef X
		default:
			return -EBADMSG;
		}
		if (r < 0)
			return r;
	}
	return r;
}

static bool is_word(struct str s, size_t max)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
			return false;
	return s.n > 0 && s.n <= max;
}

static int take_host(struct str value, struct room *at)
{
	char clean[HOST_TEXT];
	const char *why;

	if (glob_host_parse(value, clean, &why) < 0 || !str_is(value, clean))
		return -EBADMSG;
	*at->strs++ = value;
	return 0;
}

static int take_word(struct str value, size_t max, struct room *at)
{
	if (!is_word(value, max))
		return -EBADMSG;
	*at->strs++ = value;
	return 0;
}

static int take_address(struct str value, struct room *at)
{
	struct cidr c = { 0 }, again;
	char text[CIDR_TEXT];

	if (value.n != 5 && value.n != 17)
		return -EBADMSG;
	c.bits = (uint8_t)value.p[0];
	c.ip.len = (uint8_t)(value.n - 1);
	memcpy(c.ip.b, value.p + 1, c.ip.len);
	cidr_text(&c, text);
	if (c.bits > c.ip.len * 8 || cidr_parse(str_of(text), &again) < 0)
		return -EBADMSG;
	*at->cidrs++ = c;
	return 0;
}

static int take_ports(struct str value, struct room *at)
{
	const unsigned char *p = (const unsigned char *)value.p;
	struct port_range range;

	if (value.n != 4)
		return -EBADMSG;
	range = (struct port_range){ (uint16_t)(p[0] << 8 | p[1]), (uint16_t)(p[2] << 8 | p[3]) };
	if (range.first == 0 || range.first > range.last)
		return -EBADMSG;
	*at->ports++ = range;
	return 0;
}

static int take_text(struct str value, size_t max, struct str *ret)
{
	if (!str_is_text(value) || value.n > max)
		return -EBADMSG;
	*ret = value;
	return 0;
}

static int take_rule_field(struct field f, struct policy_rule *r, struct room *at)
{
	switch (f.tag) {
	case R_ID:
		r->id = f.value;
		return is_word(f.value, ID_MAX) ? 0 : -EBADMSG;
	case R_ORIGIN:
		return take_text(f.value, ORIGIN_MAX, &r->origin);
	case R_ACTION:
		return take_action(f, &r->action);
	case R_HOST:
		r->nhosts++;
		return take_host(f.value, at);
	case R_ADDRESS:
		r->naddresses++;
		return take_address(f.value, at);
	case R_PORTS:
		r->nports++;
		return take_ports(f.value, at);
	case R_PROTOCOLS:
		return take_unsigned(f, PROTO_ANY, &r->protocols);
	case R_METHOD:
		r->nmethods++;
		return take_word(f.value, LIMIT_NAME, at);
	case R_PATH:
		r->npaths++;
		return take_word(f.value, LIMIT_PATH, at);
	case R_LENIENT:
		return take_unsigned(f, LENIENT_SNI_MISMATCH | LENIENT_SNI_MISSING | LENIENT_ECH,
				     &r->lenient);
	case R_LIMITS:
		return take_limits(f.value, &r->limits, true);
	default:
		return -EBADMSG;
	}
}

/* What the decisions rely on; the compiler writes nothing else. */
static bool rule_ok(const struct policy_rule *r)
{
	bool has_request = r->nmethods || r->npaths;

	if (r->id.n == 0 || r->nhosts > LIMIT_POLICY_ITEMS || r->naddresses > LIMIT_POLICY_ITEMS ||
	    r->nports > LIMIT_POLICY_ITEMS || r->nmethods > LIMIT_POLICY_ITEMS ||
	    r->npaths > LIMIT_POLICY_ITEMS)
		return false;
	if (r->action == POLICY_ACT_ALLOW && ((!r->nhosts && !r->naddresses) || !r->nports))
		return false;
	return !has_request || r->protocols == PROTO_HTTP;
}

/* Fields come in the order of their tags, so items of a kind are adjacent. */
static int take_rule(struct str body, struct policy_rule *r, struct room *at)
{
	unsigned last = 0;
	struct field f;
	int ret;

	while ((ret = field_next(&body, &f)) == 1) {
		bool many = f.tag == R_HOST || f.tag == R_ADDRESS || f.tag == R_PORTS ||
			    f.tag == R_METHOD || f.tag == R_PATH;

		if (f.tag < last || (f.tag == last && !many))
			return -EBADMSG;
		if (f.tag != last) {
			r->hosts = f.tag == R_HOST ? at->strs : r->hosts;
			r->addresses = f.tag == R_ADDRESS ? at->cidrs : r->addresses;
			r->ports = f.tag == R_PORTS ? at->ports : r->ports;
			r->methods = f.tag == R_METHOD ? at->strs : r->methods;
			r->paths = f.tag == R_PATH ? at->strs : r->paths;
		}
		last = f.tag;
		ret = take_rule_field(f, r, at);
		if (ret < 0)
			return ret;
	}
	return ret < 0 ? ret : rule_ok(r) ? 0 : -EBADMSG;
}

static int take_field(struct field f, struct policy *p, struct room *at)
{
	switch (f.tag) {
	case P_DEFAULT:
		return take_action(f, &p->def);
	case P_NAME:
		return take_text(f.value, ORIGIN_MAX, &p->name);
	case P_LIMITS:
		return take_limits(f.value, &p->limits, false);
	case P_RULE:
		p->nrules++;
		return take_rule(f.value, at->rules++, at);
	default:
		return -EBADMSG;
	}
}

static int take_all(struct str body, struct policy *p, struct room *at)
{
	unsigned last = 0;
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		if (f.tag < last || (f.tag == last && f.tag != P_RULE))
			return -EBADMSG;
		last = f.tag;
		r = take_field(f, p, at);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_version(struct str *body)
{
	struct field f;
	uint64_t version;

	if (field_next(body, &f) != 1 || f.tag != P_VERSION || field_u64(f, &version) < 0)
		return -EBADMSG;
	return version == POLICY_FORMAT ? 0 : -EPROTO;
}

/* One allocation: the policy, its arrays by decreasing alignment, the text. */
static struct policy *make_room(const struct tally *t, struct str *body, struct room *at)
{
	size_t rules = t->rules * sizeof *at->rules, strs = t->strs * sizeof *at->strs;
	size_t cidrs = t->cidrs * sizeof *at->cidrs, ports = t->ports * sizeof *at->ports;
	char *memory = calloc(1, sizeof(struct policy) + rules + strs + ports + cidrs + body->n);
	struct policy *p = (void *)memory;

	if (!memory)
		return NULL;
	memory += sizeof *p;
	at->rules = (void *)memory;
	at->strs = (void *)(memory += rules);
	at->ports = (void *)(memory += strs);
	at->cidrs = (void *)(memory += ports);
	memory += cidrs;
	memcpy(memory, body->p, body->n);
	body->p = memory;
	p->memory = p;
	p->rules = at->rules;
	return p;
}

int policy_decode(struct str compiled, struct policy **ret)
{
	auto_done(policy_free) struct policy *p = NULL;
	struct tally t = { 0 };
	struct room at = { 0 };
	int r;

	*ret = NULL;
	if (compiled.n > LIMIT_POLICY)
		return -E2BIG;
	r = take_version(&compiled);
	if (r == 0)
		r = count_all(compiled, &t);
	if (r < 0)
		return r;
	p = make_room(&t, &compiled, &at);
	if (!p)
		return -ENOMEM;
	r = take_all(compiled, p, &at);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

void policy_free(struct policy *p)
{
	if (p)
		free(p->memory);
}
