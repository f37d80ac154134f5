/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: a btrfs in which every sandbox of root has subvolumes for what it writes, so that the
 * kernel holds a limit on disk (sys/btrfs.h), and copies cost nothing.
 *
 *   STATE/pool        a directory on which STATE/pool.img is mounted, or a symbolic link to a
 *                     directory on a btrfs of the host's own
 *   STATE/pool.img    sparse; mounted by whoever needs it first, through one loop device
 *   pool/.cay-pool    tells that it is one
 *   pool/ID           directory of a sandbox. Each generation (driver.h) is a subvolume in it:
 *                     upper, with N and work in it; next and old/G, while one takes the place of
 *                     another
 *   pool/layers/ID    subvolumes: sealed layers, as layers/ID of the state directory
 *
 * There is none until `cay setup pool`, and none for ordinary users: quotas need root.
 */
#pragma once

#include <stdint.h>

#include "store/state.h"

struct pool_info {
	char path[sizeof((struct state *)0)->dir + 16]; /* of the image, or of the directory */
	bool image;
	bool quota;	     /* limits on disk hold */
	uint64_t size, free; /* bytes */
};

/* Its directory, mounted if need be. *ret_fd is FD_NONE where there is no pool. */
int pool_open(const struct state *s, int *ret_fd, struct err *e);
/* 1: *ret tells about it. 0: there is none. */
int pool_look(const struct state *s, struct pool_info *ret, struct err *e);
/* Forget the quota groups of what is gone, where the file system is ours alone. */
int pool_sweep_groups(const struct state *s, int pool_fd, struct err *e);
/* Whether one was set up, without opening it. */
bool pool_exists(const struct state *s);

/* CONFLICT where there is one already. */
int pool_make_image(const struct state *s, uint64_t size, struct err *e);
int pool_take_dir(const struct state *s, const char *path, struct err *e);
/* CONFLICT where sandboxes or layers are in it. Content with there being none. */
int pool_unmake(const struct state *s, struct err *e);

/* A directory for a new sandbox; into `path` its absolute path, or "" where there is no pool. */
int pool_add(const struct state *s, const char *id, char *path, size_t size, struct err *e);
/* The directory of a sandbox; *ret_fd is FD_NONE where it has none, or where there is no pool. */
int pool_find(int pool_fd, const char *id, int *ret_fd, struct err *e);
/* Remove it with all in it. Content with there being none. */
int pool_drop(const struct state *s, const char *id, struct err *e);
