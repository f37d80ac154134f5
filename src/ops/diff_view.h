/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a sandbox or snapshot, opened for reading: what it started from, and what it
 * is now. Everything is by descriptor, so that a snapshot taken meanwhile changes nothing; and
 * sealed layers are held, as by a ready sandbox (store/pools.h), so that nobody removes them.
 */
#pragma once

#include "diff/stack.h"
#include "ops/cay.h"
#include "store/snapshots.h"

struct diff_mount {
	char *dest; /* inside */
	char *host; /* of a --dir: the directory outside; else NULL */
	int index;  /* of the directory below upper/ and each layer */
	struct stack base, now;
};

struct diff_view {
	struct diff_mount *mounts; /* those that can be written, the root first */
	int n;
	char *first_dir;   /* dest of the first --dir, or NULL */
	uint64_t base_ns;  /* a file of a --dir that changed later was not seen by the sandbox */
	struct cay *store; /* borrowed, to let go of them; NULL: nothing is held */
	char holder[ID_SIZE];
	int lock_fd;
};

int diff_view_open(struct cay *s, const struct sandbox_row *row, struct diff_view *ret,
		   struct err *e);
int diff_view_open_snapshot(struct cay *s, const struct snapshot_row *row, struct diff_view *ret,
			    struct err *e);
/* A sandbox, or else a snapshot, by any of its names. */
int diff_view_open_any(struct cay *s, const char *ref, struct diff_view *ret, struct err *e);
void diff_view_done(struct diff_view *l);
DEFINE_AUTO(struct diff_view, diff_view_done)

/* The mount at exactly this place inside, or NULL. */
const struct diff_mount *diff_view_at(const struct diff_view *l, const char *dest);
/* The mount that a path inside belongs to, and in *ret_rest what of it lies below. */
const struct diff_mount *diff_view_find(const struct diff_view *l, const char *path,
					const char **ret_rest);
/* True for top itself, too. Both are absolute. */
bool diff_path_below(const char *path, const char *top);
/*
 * What of a view is mounted inside m, which may be another view's: paths below m->dest, borrowed,
 * in ret, which has room for l->n. How many there are.
 */
int diff_view_inner(const struct diff_view *l, const struct diff_mount *m, const char **ret);
/* An absolute path inside without "." and "..", relative ones below the first --dir. */
int diff_view_path(const struct diff_view *l, const char *path, char **ret, struct err *e);
