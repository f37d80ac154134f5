/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ended, for people and for programs. */
#pragma once

#include "cli/call/call_stdio.h"

/* The policy has just refused this (the fields inside one TAG_DENIED): say so on stderr. */
void result_denied(struct call_outcome *o, struct str fields);
/*
 * What the exit code alone does not tell, on stderr: limits, and what the policy refused and
 * result_denied() has not said.
 */
void result_explain(const struct call_outcome *r);
/* All of it as one line of JSON on stderr. */
void result_json(const struct call_outcome *r);
