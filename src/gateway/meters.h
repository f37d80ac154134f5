/* SPDX-License-Identifier: Apache-2.0 */
/* The meters of a policy's rules, which go on from what a ledger says was used. */
#pragma once

#include "policy/ledger.h"

/* One meter per rule, NULL where no rule has limits; the caller frees it. 0 or -ENOMEM. */
int meters_make(struct ledger *l, const struct policy *p, struct meter **ret);
/* The meter of a rule of p, NULL where it has no limits. */
struct meter *meters_find(struct meter *meters, const struct policy *p,
			  const struct policy_rule *rule);
/* The memory behind a descriptor of the warden's. 0 or -errno. */
int ledger_map(int fd, struct ledger **ret);
