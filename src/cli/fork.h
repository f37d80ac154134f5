/* SPDX-License-Identifier: Apache-2.0 */
/* What forks start from: recipe and stack of a sandbox or snapshot. */
#pragma once

#include "cli/newborn.h"
#include "cli/sandboxes.h"

struct origin {
	struct newborn_origin of;
	char holder[ID_SIZE]; /* snapshot that is ours and goes again; empty: none */
	int lock_fd;	      /* that says so */
};

/* ref: a sandbox, of which a snapshot is taken, or a snapshot. */
int origin_open(struct cli_store *s, const char *ref, struct origin *ret, struct err *e);
/* Let go of what it holds. Forks that were made keep their layers. */
void origin_close(struct cli_store *s, struct origin *from);
/*
 * So many running sandboxes; fn is called for each, numbered from 0 on, and returns non-zero to
 * stop. name: NULL, or numbered: of NAME-1, NAME-2 and so on. first: one that was hatched for it,
 * which is taken over; or NULL. Those that fn was called for stay when a later one fails.
 */
struct forks {
	const char *name;
	bool numbered;
	unsigned count;
	struct newborn *first;
	int (*fn)(void *ctx, unsigned i, const struct newborn *n);
	void *ctx;
};
int origin_fork(struct cli_store *s, const struct origin *from, const struct forks *f,
		struct err *e);
