/* SPDX-License-Identifier: Apache-2.0 */
/* Replace the policy of a running gateway. */
#include <stdlib.h>

#include "gateway/flow.h"
#include "gateway/gateway.h"

struct meter *meter_of(struct gateway *g, const struct policy_rule *rule)
{
	return meters_find(g->meters, g->policy, rule);
}

/* flow_recheck_all() counts open connections again: their rules change. */
int policy_set(struct gateway *g, struct str compiled, uint64_t *ret_cut)
{
	struct meter used = g->total, *meters;
	struct policy *p, *old = g->policy;
	int r = policy_decode(compiled, &p);

	if (r < 0)
		return r;
	r = meters_make(g->ledger, p, &meters);
	if (r < 0) {
		policy_free(p);
		return r;
	}
	meter_init(&g->total, &p->limits, old ? &used : NULL, clock_mono_ns());
	meter_keep(&g->total, &g->ledger->total);
	free(g->meters);
	g->policy = p;
	g->meters = meters;
	*ret_cut = flow_recheck_all(g);
	if (old)
		policy_free(old);
	return 0;
}
