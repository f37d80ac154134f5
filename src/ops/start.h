/* SPDX-License-Identifier: Apache-2.0 */
/* Freezes what a sandbox started from: copies its --dir once, before the first snapshot. */
#pragma once

#include "ops/cay.h"
#include "store/starts.h"

/* A start, held until a row refers to it. */
struct start {
	char id[ID_SIZE]; /* empty: nothing has to be frozen */
	struct start_hold hold;
};

/*
 * Make or find the start for a sandbox of this recipe, on the layers under `top`. Warnings go to
 * c->warnings. Leaves nothing behind on failure.
 */
int start_freeze(struct cay *c, struct str recipe, const char *top, struct start *ret,
		 struct err *e);
void start_done(struct cay *c, struct start *s);
/* The same for an existing sandbox: its stack now includes the start; *top is updated. */
int start_freeze_sandbox(struct cay *c, const char *sandbox, char top[ID_SIZE], struct err *e);
/*
 * For a sandbox made from a snapshot: warn of directories that were never frozen and so show the
 * host's current files. Older versions left such snapshots, and so does a lost sandbox without a
 * snapshot.
 */
int start_warn_live(struct cay *c, struct str recipe, const char *top, struct err *e);
