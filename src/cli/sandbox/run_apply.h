/* SPDX-License-Identifier: Apache-2.0 */
/* cay run --apply: what to do with the changes after the command has ended. */
#pragma once

#include "cli/cmd.h"
#include "ops/create/creation.h"

enum run_apply { RUN_APPLY_NEVER, RUN_APPLY_SUCCESS, RUN_APPLY_ASK, RUN_APPLY_ALWAYS };

/* NULL: never. INVALID without --dir, or if a question is needed and there is no terminal. */
int run_apply_parse(const char *text, bool has_dir, enum run_apply *ret, struct err *e);
/*
 * True if the changes of a command with this exit code (negative: cay failed) are applied. With
 * --tx the changes of a failed command are undone, so they never are.
 */
bool run_apply_wants(enum run_apply how, bool tx, int code);
/*
 * Shows the changes, asks if requested, and applies them. Returns 1 to keep the sandbox, 0 if it
 * can go, or -1 on failure, which also keeps it.
 */
int run_apply(const struct cmd_ctx *ctx, struct creation *n, enum run_apply how, int code,
	      struct err *e);
