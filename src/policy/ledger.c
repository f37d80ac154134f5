/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/ledger.h"

/* FNV-1a, and never 0. */
static uint64_t hash_of(struct str id)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * 1099511628211ull;
	return h ? h : 1;
}

static struct ledger_entry *entry_of(struct ledger *l, uint64_t id)
{
	for (size_t i = 0; i < LIMIT_POLICY_RULES; i++)
		if (l->rules[i].id == id)
			return &l->rules[i];
	return NULL;
}

struct meter_used *ledger_find(struct ledger *l, struct str id)
{
	struct ledger_entry *e = entry_of(l, hash_of(id));

	return e ? &e->used : NULL;
}

static bool has_rule(const struct policy *p, uint64_t id)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (policy_has_limits(&p->rules[i].limits) && hash_of(p->rules[i].id) == id)
			return true;
	return false;
}

/*
 * The process may die between any two steps: an entry has its id only while its numbers are valid.
 */
void ledger_fit(struct ledger *l, const struct policy *p)
{
	for (size_t i = 0; i < LIMIT_POLICY_RULES; i++) {
		struct ledger_entry *e = &l->rules[i];

		if (e->id && !has_rule(p, e->id))
			e->id = 0;
	}
	for (size_t i = 0; i < p->nrules; i++) {
		uint64_t id = hash_of(p->rules[i].id);
		struct ledger_entry *e = entry_of(l, id);

		if (e || !policy_has_limits(&p->rules[i].limits))
			continue;
		e = entry_of(l, 0);
		if (!e) /* there are as many entries as rules in a policy */
			return;
		e->used = (struct meter_used){ .connections = 0 };
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		e->id = id;
	}
}
