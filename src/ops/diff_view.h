/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a sandbox or snapshot, opened for reading: what it started from, and what it is
 * now. All access is by descriptor, so a later snapshot changes nothing. The view holds its sealed
 * layers as a ready sandbox does (store/pools.h), so that no process removes them.
 */
#pragma once

#include "diff/stack.h"
#include "ops/cay.h"
#include "store/snapshots.h"

struct diff_mount {
	char *dest;   /* inside */
	char *host;   /* of a --dir: the host directory; else NULL */
	bool frozen;  /* the start was copied: later host changes do not matter */
	int index_fd; /* if frozen: states of the host's files (sys/freeze/frozen_index.h) */
	int index;    /* name of its directory below upper/ and each layer */
	struct stack base, now;
};

struct diff_view {
	struct diff_mount *mounts; /* the writable mounts, the root first */
	int n;
	char *first_dir;   /* dest of the first --dir, or NULL */
	uint64_t base_ns;  /* the sandbox does not see changes of a --dir file after this time */
	struct cay *store; /* borrowed, to release the hold; NULL: nothing is held */
	char holder[ID_SIZE];
	int lock_fd;
};

int diff_view_open(struct cay *s, const struct sandbox_row *row, struct diff_view *ret,
		   struct err *e);
int diff_view_open_snapshot(struct cay *s, const struct snapshot_row *row, struct diff_view *ret,
			    struct err *e);
/* Open a sandbox, or else a snapshot, by id, name or prefix of an id. */
int diff_view_open_any(struct cay *s, const char *ref, struct diff_view *ret, struct err *e);
void diff_view_done(struct diff_view *l);
DEFINE_AUTO(struct diff_view, diff_view_done)

/* The mount at exactly this place inside, or NULL. */
const struct diff_mount *diff_view_at(const struct diff_view *l, const char *dest);
/* The mount that contains a path inside; *ret_rest is the part of the path below the mount. */
const struct diff_mount *diff_view_find(const struct diff_view *l, const char *path,
					const char **ret_rest);
/* Also true for top itself. Both paths are absolute. */
bool diff_path_below(const char *path, const char *top);
/*
 * Finds the mounts of view l inside m, which may belong to another view. Fills ret (room for l->n)
 * with borrowed paths relative to m->dest. Returns their number.
 */
int diff_view_inner(const struct diff_view *l, const struct diff_mount *m, const char **ret);
/* Makes an absolute path inside without "." and ".."; relative paths start at the first --dir. */
int diff_view_path(const struct diff_view *l, const char *path, char **ret, struct err *e);
