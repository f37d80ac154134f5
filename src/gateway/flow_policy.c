/* SPDX-License-Identifier: Apache-2.0 */
/* What a new policy means for connections that are there, and a list of them. */
#include <string.h>

#include "gateway/dial.h"
#include "gateway/flow.h"

static const struct policy_rule *rule_by_id(const struct policy *p, struct str id)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (str_eq(p->rules[i].id, id))
			return &p->rules[i];
	return NULL;
}

static bool still_allowed(struct flow *f, struct policy_verdict *v, struct policy_query *q)
{
	flow_query(f, q);
	if (f->resolved && f->at < f->addrs.n) {
		q->addr = f->addrs.addrs[f->at];
		dial_allowed(f->g, q, v);
	} else {
		policy_decide(f->g->policy, q, v);
	}
	return v->kind != POLICY_DENY;
}

uint64_t flow_recheck_all(struct gateway *g)
{
	uint64_t cut = 0;

	for (uint32_t i = 0; i < g->top; i++) {
		struct flow *f = g->flows[i];
		struct policy_verdict v;
		struct policy_query q;
		struct meter *m;

		if (!f || f->state < FLOW_LOOK || f->state == FLOW_LAST)
			continue;
		/* Counted under the rule of the same id, where there is one. */
		f->rule = f->rule ? rule_by_id(g->policy, f->rule->id) : NULL;
		if (!still_allowed(f, &v, &q)) {
			cut++;
			flow_deny(f, &q, &v);
			continue;
		}
		m = v.rule != f->rule && f->counted ? meter_of(g, v.rule) : NULL;
		if (m)
			m->open++;
		f->rule = v.rule;
	}
	return cut;
}

int flow_list(struct gateway *g, uint32_t chan)
{
	uint64_t now = clock_mono_ns();

	for (uint32_t i = 0; i < g->top; i++) {
		struct flow *f = g->flows[i];
		struct subject s;
		char ip[IP_TEXT] = "";

		if (!f || !f->told)
			continue;
		flow_subject(f, &s);
		if (s.addr)
			ip_text(s.addr, ip);
		if (CONN_SAY(&g->warden, GW_FLOW, i, { GW_T_NAME, 0, f->name ? f->name : "" },
			     { GW_T_ADDR, 0, ip }, { GW_T_PORT, f->port, NULL },
			     { GW_T_UP, f->way[UP].bytes, NULL },
			     { GW_T_DOWN, f->way[DOWN].bytes, NULL },
			     { GW_T_US, (now - f->began_ns) / NS_PER_US, NULL }) < 0)
			break;
	}
	return conn_send(&g->warden, GW_END, chan, STR_NONE);
}
