/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a compiled policy as a document again, and finds the differences of two policies. Pure. */
#pragma once

#include "policy/policy.h"

enum { LIMIT_POLICY_DESCRIBED = 4 * LIMIT_POLICY };

/*
 * Append the rule as a line of a document, without a newline:
 * {id: coding.pypi, action: allow, hosts: ["pypi.org"], ports: [443]}
 * A '/' in an id, which a document may not have, becomes '.'. 0 or -errno as buf_add().
 */
int policy_describe_rule(const struct policy_rule *r, struct buf *out);
/* Append the whole policy as a document that compiles to the same rules. */
int policy_describe(const struct policy *p, struct buf *out);

/*
 * Call fn with the text of each rule that `to` has and `from` lacks; from NULL: with each rule. The
 * text is valid during the call. A rule with any change counts as a new rule; the numbered ids of
 * --allow and --deny rules do not count. 0, -errno, or the non-zero result of fn.
 */
int policy_each_added(const struct policy *from, const struct policy *to,
		      int (*fn)(void *ctx, const struct policy_rule *r, struct str text),
		      void *ctx);
