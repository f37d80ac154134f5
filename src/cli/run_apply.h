/* SPDX-License-Identifier: Apache-2.0 */
/* cay run --apply: what becomes of the changes when the command has ended. */
#pragma once

#include "cli/newborn.h"

enum run_apply { RUN_APPLY_NEVER, RUN_APPLY_ASK, RUN_APPLY_ALWAYS };

/* NULL: never. INVALID where there is no --dir, or nobody who could be asked. */
int run_apply_parse(const char *text, bool has_dir, enum run_apply *ret, struct err *e);
/*
 * Show the changes, ask where that is wanted, and take them over. 1 where the sandbox is to be
 * kept, 0 where it has done its duty; -1 where something failed: it is kept then, too.
 */
int run_apply(const struct cmd_ctx *ctx, struct newborn *n, enum run_apply how, int code,
	      struct err *e);
