/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What snapshot, rollback, fork and transactions do to a sandbox: one operation at a time, with
 * a row in the journal before the warden is asked and the result in the catalog after it
 * (store/snapshots.h).
 */
#pragma once

#include "cli/client.h"
#include "cli/sandboxes.h"
#include "store/snapshots.h"

/* A sandbox that is held still: nobody else begins an operation. */
struct moment {
	struct cli_store *s; /* borrowed */
	struct sandbox_row row;
	int lock;
	bool alone; /* a snapshot is refused, CONFLICT, while calls run */
};

#define MOMENT_INIT \
	{ \
		.lock = FD_NONE \
	}

/* Waits for an operation that is under way, and puts right one that was broken off. */
int moment_open(struct moment *m, struct cli_store *s, const char *ref, struct err *e);
void moment_done(struct moment *m);
DEFINE_AUTO(struct moment, moment_done)
DEFINE_AUTO(struct snapshot_row, snapshot_row_done)

/* One operation from the journal to the catalog. */
struct moment_step {
	struct op_row op;
	struct client_switch ask;
	char (*layers)[ID_SIZE]; /* of ask */
};

/* The journal is written, and the warden can be asked. Then end, or fail; done in any case. */
int moment_step_begin(struct moment *m, struct moment_step *step, struct err *e);
int moment_step_end(struct moment *m, const struct moment_step *step,
		    const struct client_switched *res, struct err *e);
/* e says why. Nothing was done where it was refused; where its answer was lost, who knows. */
void moment_step_fail(struct moment *m, const struct moment_step *step, const struct err *e);
void moment_step_done(struct moment_step *step);
DEFINE_AUTO(struct moment_step, moment_step_done)

/* A step that takes a snapshot. want: as below, but where its files lie is known at its end. */
int moment_plan_snapshot(struct moment *m, struct snapshot_row *want, struct moment_step *step,
			 struct err *e);
/* want: name, note, kind, and id where it is known; the rest is filled in. res may be NULL. */
int moment_snapshot(struct moment *m, struct snapshot_row *want, struct client_switched *res,
		    struct err *e);
/* Back to what a snapshot holds; CONFLICT with a list where calls run, unless force. */
int moment_rollback(struct moment *m, const struct snapshot_row *to, bool force,
		    struct client_switched *res, struct err *e);
/* All that was written for it is on the disk. */
int moment_sync(struct moment *m, struct err *e);
