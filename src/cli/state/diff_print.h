/* SPDX-License-Identifier: Apache-2.0 */
/* Prints changes for people. For programs: ops/json.h. */
#pragma once

#include "cli/cmd.h"
#include "ops/diff.h"

/* One line: letter, path, and changes other than content; line counts come first, if counted. */
void diff_print_line(const struct cmd_ctx *ctx, const struct diff_change *c);
void diff_print_totals(FILE *f, const struct diff_totals *t);
