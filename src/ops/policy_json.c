/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/policy_json.h"

#include "wire/ip.h"

enum { TEXT_MAX = 4096 };

const char *policy_action_name(enum policy_action a)
{
	return a == POLICY_ACT_ALLOW ? "allow" : "deny";
}

const char *policy_ports_text(const struct policy_rule *r, struct buf *b)
{
	buf_clear(b);
	for (size_t i = 0; i < r->nports; i++) {
		struct port_range p = r->ports[i];
		int n = p.first == p.last
				? buf_printf(b, "%s%u", b->len ? " " : "", p.first)
				: buf_printf(b, "%s%u-%u", b->len ? " " : "", p.first, p.last);

		if (n < 0)
			break;
	}
	return b->len ? b->data : "all";
}

const char *policy_protocols_text(const struct policy_rule *r, struct buf *b)
{
	static const enum policy_proto all[] = { PROTO_TLS, PROTO_HTTP, PROTO_SSH, PROTO_TCP };

	if (r->protocols == 0)
		return r->action == POLICY_ACT_ALLOW ? "by port" : "any";
	if (r->protocols == PROTO_ANY)
		return "any";
	buf_clear(b);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if ((r->protocols & all[i]) &&
		    buf_printf(b, "%s%s", b->len ? " " : "", policy_proto_name(all[i])) < 0)
			break;
	return b->len ? b->data : "any";
}

void json_policy_checked(struct json *j, const struct policy *p)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	json_obj(j);
	json_put_str(j, "policy", p->name);
	json_put_text(j, "default", policy_action_name(p->def));
	json_put_arr(j, "rules");
	for (size_t i = 0; i < p->nrules; i++) {
		const struct policy_rule *r = &p->rules[i];

		json_obj(j);
		json_put_str(j, "id", r->id);
		json_put_str(j, "origin", r->origin);
		json_put_text(j, "action", policy_action_name(r->action));
		json_put_arr(j, "targets");
		for (size_t k = 0; k < r->nhosts; k++)
			json_str(j, r->hosts[k]);
		for (size_t k = 0; k < r->naddresses; k++) {
			char cidr[CIDR_TEXT];

			cidr_text(&r->addresses[k], cidr);
			json_c(j, cidr);
		}
		json_end(j);
		json_put_text(j, "ports", policy_ports_text(r, &b));
		json_put_text(j, "protocols", policy_protocols_text(r, &b));
		json_end(j);
	}
	json_end(j);
	json_end(j);
}
