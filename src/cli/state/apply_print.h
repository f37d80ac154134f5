/* SPDX-License-Identifier: Apache-2.0 */
/* What cay apply and cay run --apply show of a plan. */
#pragma once

#include <stdio.h>

#include "cli/cmd.h"
#include "ops/apply.h"

/*
 * A line per change on f, then what is left out and refused on stderr; as JSON all of it on stdout.
 * refused: only that, nothing was done. Nothing where the user wants it quiet.
 */
void apply_print(const struct apply_planned *p, const struct cmd_ctx *ctx, bool refused, FILE *f);
