/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: a snapshot that is gone back to, or forgotten. */
#pragma once

#include "cli/moment.h"

/* A snapshot; to delete it is to commit. */
int tx_begin(struct moment *m, struct snapshot_row *ret, struct err *e);
/* end_calls: running ones first, else they make it fail. */
int tx_abort(struct moment *m, const struct snapshot_row *to, bool end_calls, struct err *e);

/*
 * A transaction of its own around `run`, kept if that returns 0, else dropped with all that runs in
 * the sandbox. Refused while other commands run: their changes would go with it. What run returns.
 */
int tx_around(const char *ref, int (*run)(struct cmd_ctx *ctx, struct cli_store *s, struct err *e),
	      struct cmd_ctx *ctx, struct err *e);
