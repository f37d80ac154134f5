/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the plan of cay apply and cay run --apply. */
#pragma once

#include <stdio.h>

#include "cli/cmd.h"
#include "ops/apply.h"

/*
 * Prints one line per change to f, and what is left out or refused to stderr; as JSON everything
 * goes to stdout. refused: print only refusals; nothing was applied. Prints nothing with -q.
 */
void apply_print(const struct apply_planned *p, const struct cmd_ctx *ctx, bool refused, FILE *f);
