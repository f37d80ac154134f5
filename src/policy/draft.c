/* SPDX-License-Identifier: Apache-2.0 */
/* Encode one rule from its parts. */
#include "policy/address.h"
#include "policy/compile_rule.h"
#include "policy/format.h"
#include "wire/frame.h"
#include "wire/glob.h"

enum { PORT_SSH = 22, PORT_HTTP = 80, PORT_TLS = 443 };

void draft_init(struct draft *r)
{
	*r = (struct draft){ .action = POLICY_ACT_ALLOW,
			     .hosts = BUF_INIT(LIMIT_POLICY),
			     .addresses = BUF_INIT(LIMIT_POLICY),
			     .ports = BUF_INIT(LIMIT_POLICY),
			     .methods = BUF_INIT(LIMIT_POLICY),
			     .paths = BUF_INIT(LIMIT_POLICY) };
}

void draft_done(struct draft *r)
{
	buf_done(&r->hosts);
	buf_done(&r->addresses);
	buf_done(&r->ports);
	buf_done(&r->methods);
	buf_done(&r->paths);
}

int draft_host(struct draft *r, struct str text, const char **ret_why)
{
	char clean[HOST_TEXT];
	struct cidr c;

	if (cidr_parse(text, &c) != -EINVAL) {
		*ret_why = "is an address; write it under 'addresses'";
		return -EINVAL;
	}
	if (glob_host_parse(text, clean, ret_why) < 0)
		return -EINVAL;
	r->nhosts++;
	return field_put_c(&r->hosts, R_HOST, clean);
}

static const char *address_fault(const struct cidr *c, enum policy_action action)
{
	struct address_info info = address_classify(&c->ip);

	if (c->ip.len == 16 && ip_plain(c->ip).len == 4)
		return "is an IPv4 address; write it as one";
	if (action == POLICY_ACT_ALLOW && info.class == ADDRESS_NEVER &&
	    cidr_within(c, &info.range))
		return "is never dialled: loopback, multicast, reserved and the like";
	return NULL;
}

int draft_address(struct draft *r, struct str text, const char **ret_why)
{
	uint8_t wire[17];
	struct cidr c;
	int ret = cidr_parse(text, &c);

	*ret_why = ret == -ERANGE ? "has bits set behind its prefix"
				  : "is neither an address nor a range like 10.0.0.0/8";
	if (ret < 0)
		return -EINVAL;
	*ret_why = address_fault(&c, r->action);
	if (*ret_why)
		return -EINVAL;
	wire[0] = c.bits;
	memcpy(wire + 1, c.ip.b, c.ip.len);
	r->naddresses++;
	return field_put(&r->addresses, R_ADDRESS,
			 (struct str){ (const char *)wire, 1u + c.ip.len });
}

int draft_ports(struct draft *r, uint16_t first, uint16_t last)
{
	const uint8_t wire[4] = { (uint8_t)(first >> 8), (uint8_t)first, (uint8_t)(last >> 8),
				  (uint8_t)last };

	r->nports++;
	return field_put(&r->ports, R_PORTS, (struct str){ (const char *)wire, sizeof wire });
}

static int default_ports(struct draft *r, const char **ret_why)
{
	unsigned set = r->protocols ? r->protocols : PROTO_HTTP | PROTO_TLS;
	int ret = 0;

	if (set & PROTO_TCP) {
		*ret_why = "protocol tcp needs 'ports'";
		return -EINVAL;
	}
	if (set & PROTO_SSH)
		ret = draft_ports(r, PORT_SSH, PORT_SSH);
	if (ret == 0 && (set & PROTO_HTTP))
		ret = draft_ports(r, PORT_HTTP, PORT_HTTP);
	if (ret == 0 && (set & PROTO_TLS))
		ret = draft_ports(r, PORT_TLS, PORT_TLS);
	return ret;
}

/* Defaults of a rule: docs/policy.md, "Defaults". */
static int fill_in(struct draft *r, const char **ret_why)
{
	if (r->methods.len || r->paths.len) {
		if (r->protocols && r->protocols != PROTO_HTTP) {
			*ret_why = "methods and paths are for protocol http only";
			return -EINVAL;
		}
		r->protocols = PROTO_HTTP;
	}
	if (r->action == POLICY_ACT_DENY)
		return 0;
	if (!r->nhosts && !r->naddresses) {
		*ret_why = "a rule that allows needs 'hosts' or 'addresses'";
		return -EINVAL;
	}
	if (r->lenient && r->protocols && !(r->protocols & PROTO_TLS)) {
		*ret_why = "'tls' is for protocol tls only";
		return -EINVAL;
	}
	return r->nports ? 0 : default_ports(r, ret_why);
}

/* Fields in the order of their tags. */
static int put_fields(const struct draft *r, struct buf *out)
{
	auto_done(buf_done) struct buf limits = BUF_INIT(LIMIT_PATH);
	int ret = limits_put(&limits, &r->limits);

	if (ret == 0)
		ret = field_put_c(out, R_ID, r->id);
	if (ret == 0)
		ret = field_put_c(out, R_ORIGIN, r->origin);
	if (ret == 0)
		ret = field_put_u64(out, R_ACTION, r->action);
	if (ret == 0)
		ret = buf_add_str(out, buf_str(&r->hosts));
	if (ret == 0)
		ret = buf_add_str(out, buf_str(&r->addresses));
	if (ret == 0)
		ret = buf_add_str(out, buf_str(&r->ports));
	if (ret == 0 && r->protocols)
		ret = field_put_u64(out, R_PROTOCOLS, r->protocols);
	if (ret == 0)
		ret = buf_add_str(out, buf_str(&r->methods));
	if (ret == 0)
		ret = buf_add_str(out, buf_str(&r->paths));
	if (ret == 0 && r->lenient)
		ret = field_put_u64(out, R_LENIENT, r->lenient);
	if (ret == 0 && limits.len)
		ret = field_put(out, R_LIMITS, buf_str(&limits));
	return ret;
}

int draft_put(struct draft *r, struct buf *out, const char **ret_why)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_POLICY);
	int ret = fill_in(r, ret_why);

	if (ret == 0)
		ret = put_fields(r, &body);
	return ret < 0 ? ret : field_put(out, P_RULE, buf_str(&body));
}
