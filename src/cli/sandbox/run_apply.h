/* SPDX-License-Identifier: Apache-2.0 */
/* cay run --apply: what becomes of the changes when the command has ended. */
#pragma once

#include "cli/cmd.h"
#include "ops/create/creation.h"

enum run_apply { RUN_APPLY_NEVER, RUN_APPLY_SUCCESS, RUN_APPLY_ASK, RUN_APPLY_ALWAYS };

/* NULL: never. INVALID where there is no --dir, or nobody who could be asked. */
int run_apply_parse(const char *text, bool has_dir, enum run_apply *ret, struct err *e);
/*
 * Whether a command that ended with this code (negative: cay failed) has its changes applied. With
 * --tx those of a failed command are undone, so they never are.
 */
bool run_apply_wants(enum run_apply how, bool tx, int code);
/*
 * Show the changes, ask where that is wanted, and take them over. 1 where the sandbox is to be
 * kept, 0 where it has done its duty; -1 where something failed: it is kept then, too.
 */
int run_apply(const struct cmd_ctx *ctx, struct creation *n, enum run_apply how, int code,
	      struct err *e);
