/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: a snapshot that is gone back to, or forgotten. */
#pragma once

#include "cli/moment.h"
#include "cli/session.h"

/* A snapshot; to delete it is to commit. */
int tx_begin(struct moment *m, struct snapshot_row *ret, struct err *e);
/* end_calls: running ones first, else they make it fail. */
int tx_abort(struct moment *m, const struct snapshot_row *to, bool end_calls, struct err *e);

/*
 * A transaction of its own around one command, kept if that exits with 0, else dropped with all
 * that runs in the sandbox. Refused while other commands run: their changes would go with it.
 * `run` asks for both at once in a session, with `first`; what it returns. s: its state is open.
 */
int tx_around(struct cli_store *s, const char *ref,
	      int (*run)(struct cmd_ctx *ctx, struct cli_store *s, const char *id,
			 struct session_first *first, struct err *e),
	      struct cmd_ctx *ctx, struct err *e);
