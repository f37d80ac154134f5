/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/meters.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"

struct meter *meters_find(struct meter *meters, const struct policy *p,
			  const struct policy_rule *rule)
{
	return rule && meters && policy_has_limits(&rule->limits) ? &meters[rule - p->rules] : NULL;
}

int meters_make(struct ledger *l, const struct policy *p, struct meter **ret)
{
	uint64_t now = clock_mono_ns();
	struct meter *meters = NULL;
	bool any = false;

	for (size_t i = 0; i < p->nrules; i++)
		any |= policy_has_limits(&p->rules[i].limits);
	if (any) {
		meters = calloc(p->nrules, sizeof *meters);
		if (!meters)
			return -ENOMEM;
	}
	ledger_fit(l, p);
	for (size_t i = 0; any && i < p->nrules; i++) {
		struct meter_used *kept = ledger_find(l, p->rules[i].id);

		meter_init(&meters[i], &p->rules[i].limits, NULL, now);
		if (kept)
			meter_keep(&meters[i], kept);
	}
	*ret = meters;
	return 0;
}

int ledger_map(int fd, struct ledger **ret)
{
	void *p = mmap(NULL, sizeof **ret, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}
