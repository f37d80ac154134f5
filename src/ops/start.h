/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing what a sandbox started from: its --dir, copied once, before the first snapshot. */
#pragma once

#include "ops/cay.h"
#include "store/starts.h"

/* A start that is held until whatever shall have it has it. */
struct start {
	char id[ID_SIZE]; /* empty: nothing of the sandbox has to be frozen */
	struct start_hold hold;
};

/*
 * Make or find the start of a sandbox of this recipe, on the layers under `top`. Warnings go to
 * c->warnings. On failure nothing is left.
 */
int start_freeze(struct cay *c, struct str recipe, const char *top, struct start *ret,
		 struct err *e);
void start_done(struct cay *c, struct start *s);
/* The same for a sandbox that exists: from now on it lies on its start; *top becomes that. */
int start_freeze_sandbox(struct cay *c, const char *sandbox, char top[ID_SIZE], struct err *e);
/*
 * For what is made of a snapshot: warn of directories that were never frozen and so are as the host
 * has them now. A lost sandbox that had no snapshot left such a one, and so did older versions.
 */
int start_warn_live(struct cay *c, struct str recipe, const char *top, struct err *e);
