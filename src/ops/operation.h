/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot, rollback, fork and transactions change a sandbox by one operation at a time. A row goes
 * into the journal before the warden is asked, and the result into the catalog afterwards
 * (store/snapshots.h).
 */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"
#include "store/snapshots.h"

/* A sandbox locked against other operations. */
struct operation {
	struct cay *s; /* borrowed */
	struct sandbox_row row;
	struct link *link; /* holds the lease */
	int lock;	   /* lock file, for a warden without a lease */
	bool alone;	   /* refuse a snapshot with CONFLICT while calls run */
};

#define OPERATION_INIT \
	{ \
		.lock = FD_NONE \
	}

/* Waits for an operation in progress, and recovers an interrupted one. */
int operation_open(struct operation *m, struct cay *s, const char *ref, struct err *e);
void operation_done(struct operation *m);
DEFINE_AUTO(struct operation, operation_done)
DEFINE_AUTO(struct snapshot_row, snapshot_row_done)

/* want: name, note, kind, and the id if known; the rest is filled in. res may be NULL. */
int operation_snapshot(struct operation *m, struct snapshot_row *want, struct link_switched *res,
		       struct err *e);
/* Go back to a snapshot. CONFLICT with a list if calls run, unless force. */
int operation_rollback(struct operation *m, const struct snapshot_row *to, bool force,
		       struct link_switched *res, struct err *e);
/* Sync everything that the operation wrote to disk. */
int operation_sync(struct operation *m, struct err *e);
