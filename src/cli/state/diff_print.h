/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for people. For programs: ops/json.h. */
#pragma once

#include "cli/cmd.h"
#include "ops/diff.h"

/* One line: letter, path, and what has changed beside the content; first its lines, if counted. */
void diff_print_line(const struct cmd_ctx *ctx, const struct diff_change *c);
void diff_print_totals(FILE *f, const struct diff_totals *t);
