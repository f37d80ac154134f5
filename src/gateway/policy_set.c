/* SPDX-License-Identifier: Apache-2.0 */
/* A new policy for a living gateway. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/flow.h"
#include "gateway/gateway.h"

static bool has_limits(const struct policy_limits *l)
{
	static const struct policy_limits none;

	return memcmp(l, &none, sizeof none) != 0;
}

struct meter *meter_of(struct gateway *g, const struct policy_rule *rule)
{
	return rule && g->meters && has_limits(&rule->limits) ? &g->meters[rule - g->policy->rules]
							      : NULL;
}

static const struct meter *meter_by_id(struct gateway *g, struct str id)
{
	for (size_t i = 0; g->policy && g->meters && i < g->policy->nrules; i++)
		if (str_eq(g->policy->rules[i].id, id) && has_limits(&g->policy->rules[i].limits))
			return &g->meters[i];
	return NULL;
}

/*
 * What was used under a rule's id goes on counting under the new rule of that id; what is open is
 * counted anew by flow_recheck_all(), for connections change their rules.
 */
static int make_meters(struct gateway *g, const struct policy *p, struct meter **ret)
{
	uint64_t now = clock_mono_ns();
	bool any = false;

	*ret = NULL;
	for (size_t i = 0; i < p->nrules; i++)
		any |= has_limits(&p->rules[i].limits);
	if (!any)
		return 0;
	*ret = calloc(p->nrules, sizeof **ret);
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < p->nrules; i++)
		if (has_limits(&p->rules[i].limits)) {
			meter_init(&(*ret)[i], &p->rules[i].limits, meter_by_id(g, p->rules[i].id),
				   now);
			(*ret)[i].open = 0;
		}
	return 0;
}

int policy_set(struct gateway *g, struct str compiled, uint64_t *ret_cut)
{
	struct meter used = g->total, *meters;
	struct policy *p, *old = g->policy;
	int r = policy_decode(compiled, &p);

	if (r < 0)
		return r;
	r = make_meters(g, p, &meters);
	if (r < 0) {
		policy_free(p);
		return r;
	}
	meter_init(&g->total, &p->limits, old ? &used : NULL, clock_mono_ns());
	free(g->meters);
	g->policy = p;
	g->meters = meters;
	*ret_cut = flow_recheck_all(g);
	if (old)
		policy_free(old);
	return 0;
}
