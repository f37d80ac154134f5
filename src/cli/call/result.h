/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ended, for people and for programs. */
#pragma once

#include "cli/call/call_stdio.h"

/* What the exit code alone does not tell, on stderr: limits, and what the policy refused. */
void result_explain(const struct call_outcome *r);
/* All of it as one line of JSON on stderr. */
void result_json(const struct call_outcome *r);
