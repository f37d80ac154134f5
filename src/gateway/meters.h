/* SPDX-License-Identifier: Apache-2.0 */
/* Meters for the limits of rules. They continue from the totals in the warden's ledger. */
#pragma once

#include "policy/ledger.h"

/* One meter per rule; NULL if no rule has limits. The caller frees it. 0 or -ENOMEM. */
int meters_make(struct ledger *l, const struct policy *p, struct meter **ret);
/* The meter of a rule of p; NULL if the rule has no limits. */
struct meter *meters_find(struct meter *meters, const struct policy *p,
			  const struct policy_rule *rule);
/* Map the memory that the warden shares by this descriptor. 0 or -errno. */
int ledger_map(int fd, struct ledger **ret);
