/* SPDX-License-Identifier: Apache-2.0 */
/* Apply a new policy to open connections, and list connections. */
#include <string.h>

#include "gateway/dial.h"
#include "gateway/flow.h"

static const struct policy_rule *same_rule(const struct policy *p, const struct policy_rule *old)
{
	for (size_t i = 0; old && i < p->nrules; i++)
		if (str_eq(p->rules[i].id, old->id))
			return &p->rules[i];
	return NULL;
}

static bool still_allowed(struct flow *f, struct policy_verdict *v, struct policy_query *q)
{
	flow_query(f, q);
	if (f->dialled.len) {
		q->addr = f->dialled;
		dial_verdict(f->g->policy, q, f->local, v);
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
		bool allowed = true;
		struct meter *m;

		if (!f)
			continue;
		/* In every state: the rules of the old policy are freed next. */
		f->rule = same_rule(g->policy, f->rule);
		for (int k = 0; f->http && k < HTTP_PENDING; k++)
			f->http->pending[k].rule = same_rule(g->policy, f->http->pending[k].rule);
		if (f->state >= FLOW_LOOK && f->state != FLOW_LAST) {
			allowed = still_allowed(f, &v, &q);
			f->rule = allowed && v.rule ? v.rule : f->rule;
		}
		m = f->counted ? meter_of(g, f->rule) : NULL;
		if (m)
			m->open++;
		cut += !allowed;
		if (!allowed)
			flow_deny(f, &q, &v);
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
