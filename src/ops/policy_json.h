/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as texts and JSON. */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"
#include "wire/json_write.h"

const char *policy_action_name(enum policy_action a);
/* Ports and protocols of a rule, for people; in b, or a constant. */
const char *policy_ports_text(const struct policy_rule *r, struct buf *b);
const char *policy_protocols_text(const struct policy_rule *r, struct buf *b);
/* Its rules, in the order in which they are asked. */
void json_policy_checked(struct json *j, const struct policy *p);
