/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage: a btrfs in which every sandbox of root has subvolumes for what it writes. So the kernel
 * enforces disk limits (sys/files/btrfs.h), and copies cost nothing.
 *
 *   STATE/pool        a directory on which STATE/pool.img is mounted, or a symbolic link to a
 *                     directory on the host's own btrfs
 *   STATE/pool.img    sparse; mounted by the first process that needs it, through one loop device
 *   pool/.cay-pool    marks it as storage
 *   pool/ID           directory of a sandbox. Each generation (driver.h) is a subvolume in it:
 *                     upper, with N and work in it; during a switch also next and old/G
 *   pool/layers/ID    subvolumes: sealed layers, as layers/ID of the state directory
 *
 * It does not exist until `cay setup pool`, and never for ordinary users: quotas need root.
 */
#pragma once

#include <stdint.h>

#include "store/state.h"

struct pool_info {
	char path[sizeof((struct state *)0)->dir + 16]; /* path of the image or of the directory */
	bool image;
	bool quota;	     /* disk limits are enforced */
	uint64_t size, free; /* bytes */
};

/* Open its directory; mounts it if needed. *ret_fd is FD_NONE without storage. */
int pool_open(const struct state *s, int *ret_fd, struct err *e);
/* 1: *ret describes it. 0: there is none. */
int pool_look(const struct state *s, struct pool_info *ret, struct err *e);
/* Remove quota groups of deleted subvolumes, if the file system is ours alone. */
int pool_sweep_groups(const struct state *s, int pool_fd, struct err *e);
/* True if it was set up; does not open it. */
bool pool_exists(const struct state *s);

/* Make a directory for a new sandbox. `path` gets its absolute path, or "" without storage. */
int pool_add(const struct state *s, const char *id, char *path, size_t size, struct err *e);
/* The directory of a sandbox; *ret_fd is FD_NONE if it has none, or without storage. */
int pool_find(int pool_fd, const char *id, int *ret_fd, struct err *e);
/* Remove it with its content. No error if there is none. */
int pool_drop(const struct state *s, const char *id, struct err *e);
