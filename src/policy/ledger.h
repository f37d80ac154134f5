/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The used part of the budgets of a sandbox and its rules, in memory that outlives the counting
 * process. A gateway process maps it. The warden keeps it and gives it to the next process, so a
 * budget does not restart when a gateway dies. It holds only numbers, so no content is invalid.
 *
 * An entry belongs to a rule by the hash of the rule's id. Two ids with the same hash would share
 * an entry and use up each other's budget; neither would get more than its own.
 */
#pragma once

#include "policy/meter.h"

struct ledger_entry {
	uint64_t id; /* hash of the rule's id; 0: free */
	struct meter_used used;
};

struct ledger {
	struct meter_used total; /* the whole sandbox */
	struct ledger_entry rules[LIMIT_POLICY_RULES];
};

/* Give every rule with limits an entry, and remove the entries of rules that no longer exist. */
void ledger_fit(struct ledger *l, const struct policy *p);
/* The entry of a rule, or NULL. */
struct meter_used *ledger_find(struct ledger *l, struct str id);
