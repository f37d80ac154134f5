/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes with the same files and options as another has now. */
#pragma once

#include "ops/create/creation.h"

enum { FORK_MOST = 100000 };

struct fork_spec {
	unsigned count;
	const char *name; /* NULL: none; numbered: NAME-1, NAME-2 and so on */
	bool numbered;
	/* For each as it runs, numbered from 0 on; non-zero: stop. Those that it was called for
	 * stay when a later one fails. */
	int (*fn)(void *ctx, unsigned i, const struct creation *n);
	void *ctx;
	const char *owner; /* id of the key that asks; NULL: the host's user */
};

/* ref: a sandbox, of which a snapshot is taken, or a snapshot. */
int op_fork(struct cay *c, const char *ref, const struct fork_spec *f, struct err *e);

/* What forks start from, for whoever needs it longer: recipe and stack of a sandbox or snapshot. */
struct fork_source {
	struct creation_source of;
	char holder[ID_SIZE]; /* snapshot that is ours and goes again; empty: none */
	int lock_fd;	      /* that says so */
};

int fork_source_open(struct cay *c, const char *ref, struct fork_source *ret, struct err *e);
/* Let go of what it holds. Forks that were made keep their layers. */
void fork_source_close(struct cay *c, struct fork_source *from);
int fork_from(struct cay *c, const struct fork_source *from, const struct fork_spec *f,
	      struct err *e);
