/* SPDX-License-Identifier: Apache-2.0 */
/* Creates sandboxes with the current files and options of another sandbox. */
#pragma once

#include "ops/create/creation.h"

enum { FORK_MOST = 100000 };

struct fork_spec {
	unsigned count;
	const char *name; /* NULL: none; numbered: NAME-1, NAME-2 and so on */
	bool numbered;
	/*
	 * Called for each fork once it runs, numbered from 0; non-zero stops. Forks that were
	 * reported stay if a later one fails.
	 */
	int (*fn)(void *ctx, unsigned i, const struct creation *n);
	void *ctx;
	const char *owner; /* id of the key that asks; NULL: the owner of the source */
};

/* ref: a snapshot, or a sandbox to take a snapshot of. */
int op_fork(struct cay *c, const char *ref, const struct fork_spec *f, struct err *e);

/* The recipe and stack of a sandbox or snapshot, held for several forks. */
struct fork_source {
	struct creation_source of;
	char holder[ID_SIZE]; /* temporary snapshot that we remove afterwards; empty: none */
	int lock_fd;	      /* lock that marks the holder as ours */
};

int fork_source_open(struct cay *c, const char *ref, struct fork_source *ret, struct err *e);
/* Release what it holds. Existing forks keep their layers. */
void fork_source_close(struct cay *c, struct fork_source *from);
int fork_from(struct cay *c, const struct fork_source *from, const struct fork_spec *f,
	      struct err *e);
