/* SPDX-License-Identifier: Apache-2.0 */
/* What forks start from: recipe and stack of a sandbox or snapshot. */
#pragma once

#include "cli/newborn.h"
#include "cli/sandboxes.h"

struct origin {
	char recipe_of[ID_SIZE], top[ID_SIZE];
	char holder[ID_SIZE]; /* snapshot that is ours and goes again; empty: none */
};

/* ref: a sandbox, of which a snapshot is taken, or a snapshot. */
int origin_open(struct cli_store *s, const char *ref, struct origin *ret, struct err *e);
/* Let go of what it holds. Forks that were made keep their layers. */
void origin_close(struct cli_store *s, struct origin *from);
/* A running sandbox, released; of a warden that was hatched, or not yet. name may be NULL. */
int origin_fork(struct cli_store *s, const struct origin *from, const char *name,
		struct newborn *ret, struct err *e);
