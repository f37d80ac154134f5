/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What snapshot, rollback, fork and transactions do to a sandbox: one operation at a time, with
 * a row in the journal before the warden is asked and the result in the catalog after it
 * (store/snapshots.h).
 */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"
#include "store/snapshots.h"

/* A sandbox that is held still: nobody else begins an operation. */
struct operation {
	struct cay *s; /* borrowed */
	struct sandbox_row row;
	struct link *link; /* with the lease */
	int lock;	   /* of a warden that has no lease */
	bool alone;	   /* a snapshot is refused, CONFLICT, while calls run */
};

#define OPERATION_INIT \
	{ \
		.lock = FD_NONE \
	}

/* Waits for an operation that is under way, and puts right one that was broken off. */
int operation_open(struct operation *m, struct cay *s, const char *ref, struct err *e);
void operation_done(struct operation *m);
DEFINE_AUTO(struct operation, operation_done)
DEFINE_AUTO(struct snapshot_row, snapshot_row_done)

/* want: name, note, kind, and id where it is known; the rest is filled in. res may be NULL. */
int operation_snapshot(struct operation *m, struct snapshot_row *want, struct link_switched *res,
		       struct err *e);
/* Back to what a snapshot holds; CONFLICT with a list where calls run, unless force. */
int operation_rollback(struct operation *m, const struct snapshot_row *to, bool force,
		       struct link_switched *res, struct err *e);
/* All that was written for it is on the disk. */
int operation_sync(struct operation *m, struct err *e);
