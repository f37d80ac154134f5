/* SPDX-License-Identifier: Apache-2.0 */
/* Shows how a call ended, for people and for programs. */
#pragma once

#include "cli/call/call_stdio.h"

/* Print on stderr what the exit code alone does not tell: limits, and what the policy denied. */
void result_explain(const struct call_outcome *r);
/* Print all of it as one line of JSON on stderr. */
void result_json(const struct call_outcome *r);
