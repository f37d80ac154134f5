/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a sandbox or snapshot, opened for reading: what it started from, and what it
 * is now. Everything is by descriptor, so that a snapshot taken meanwhile changes nothing; and
 * sealed layers are held, as by a ready sandbox (store/pools.h), so that nobody removes them.
 */
#pragma once

#include "cli/sandboxes.h"
#include "diff/stack.h"
#include "store/snapshots.h"

struct layers_mount {
	char *dest; /* inside */
	char *host; /* of a --dir: the directory outside; else NULL */
	int index;  /* of the directory below upper/ and each layer */
	struct stack base, now;
};

struct layers {
	struct layers_mount *mounts; /* those that can be written, the root first */
	int n;
	char *first_dir;  /* dest of the first --dir, or NULL */
	uint64_t base_ns; /* a file of a --dir that changed later was not seen by the sandbox */
	struct cli_store *store; /* borrowed, to let go of them; NULL: nothing is held */
	char holder[ID_SIZE];
	int lock_fd;
};

int layers_open(struct cli_store *s, const struct sandbox_row *row, struct layers *ret,
		struct err *e);
int layers_open_snapshot(struct cli_store *s, const struct snapshot_row *row, struct layers *ret,
			 struct err *e);
/* A sandbox, or else a snapshot, by any of its names. */
int layers_open_any(struct cli_store *s, const char *ref, struct layers *ret, struct err *e);
void layers_done(struct layers *l);
DEFINE_AUTO(struct layers, layers_done)

/* The mount at exactly this place inside, or NULL. */
const struct layers_mount *layers_at(const struct layers *l, const char *dest);
/* The mount that a path inside belongs to, and in *ret_rest what of it lies below. */
const struct layers_mount *layers_find(const struct layers *l, const char *path,
				       const char **ret_rest);
/* An absolute path inside without "." and "..", relative ones below the first --dir. */
int layers_path(const struct layers *l, const char *path, char **ret, struct err *e);
