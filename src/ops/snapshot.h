/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, rollbacks and transactions. */
#pragma once

#include "ops/operation.h"

struct snapshot_spec {
	const char *sandbox;	 /* id, name or prefix of an id */
	const char *name, *note; /* or NULL */
	bool sync;		 /* return after everything is on disk */
};

struct snapshot_result {
	char id[ID_SIZE], name[64], sandbox[ID_SIZE], top[ID_SIZE];
	bool changed; /* false: nothing changed since the last snapshot, and both share a layer */
	uint64_t took_us, freeze_us;
};

int op_snapshot(struct cay *c, const struct snapshot_spec *spec, struct snapshot_result *ret,
		struct err *e);
/* Snapshots of a sandbox (NULL: all), oldest first; fn returns non-zero to stop. */
int op_snapshot_list(struct cay *c, const char *sandbox,
		     int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx,
		     struct err *e);
int op_snapshot_remove(struct cay *c, const char *ref, char ret_id[ID_SIZE], struct err *e);

struct rollback_spec {
	const char *sandbox;
	const char *snapshot; /* NULL: the latest one that a user took */
	bool force;	      /* end running calls first; otherwise running calls make it fail */
};

struct rollback_result {
	char id[ID_SIZE], snapshot[ID_SIZE];
	uint64_t took_us;
};

int op_rollback(struct cay *c, const struct rollback_spec *spec, struct rollback_result *ret,
		struct err *e);

struct tx_result {
	char id[ID_SIZE], transaction[ID_SIZE];
};

/* alone: refuse while other commands run, because an abort would undo their changes too. */
int op_tx_begin(struct cay *c, const char *ref, bool alone, struct tx_result *ret, struct err *e);
/* Commits the innermost transaction, or the one named by `transaction`. */
int op_tx_commit(struct cay *c, const char *ref, const char *transaction, struct tx_result *ret,
		 struct err *e);
int op_tx_abort(struct cay *c, const char *ref, const char *transaction, bool force,
		struct tx_result *ret, struct err *e);
