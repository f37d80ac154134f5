/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage: a btrfs in which every sandbox of root has subvolumes for what it writes. So the kernel
 * enforces disk limits (sys/files/btrfs.h), and copies cost nothing.
 *
 *   STATE/storage        a directory on which STATE/storage.img is mounted, or a symbolic link to a
 *                     directory on the host's own btrfs
 *   STATE/storage.img    sparse; mounted by the first process that needs it, through one loop
 * device storage/.cay-storage    marks it as storage storage/ID           directory of a sandbox.
 * Each generation (driver.h) is a subvolume in it: upper, with N and work in it; during a switch
 * also next and old/G storage/layers/ID    subvolumes: sealed layers, as layers/ID of the state
 * directory
 *
 * It does not exist until `cay setup storage`, and never for ordinary users: quotas need root.
 */
#pragma once

#include <stdint.h>

#include "store/state.h"

struct storage_info {
	char path[sizeof((struct state *)0)->dir + 16]; /* path of the image or of the directory */
	bool image;
	bool quota;	     /* disk limits are enforced */
	uint64_t size, free; /* bytes */
};

/* Open its directory; mounts it if needed. *ret_fd is FD_NONE without storage. */
int storage_open(const struct state *s, int *ret_fd, struct err *e);
/* 1: *ret describes it. 0: there is none. */
int storage_inspect(const struct state *s, struct storage_info *ret, struct err *e);
/* Remove quota groups of deleted subvolumes, if the file system is ours alone. */
int storage_sweep_groups(const struct state *s, int storage_fd, struct err *e);
/* True if it was set up; does not open it. */
bool storage_exists(const struct state *s);

/* Make a directory for a new sandbox. `path` gets its absolute path, or "" without storage. */
int storage_add(const struct state *s, const char *id, char *path, size_t size, struct err *e);
/* The directory of a sandbox; *ret_fd is FD_NONE if it has none, or without storage. */
int storage_find(int storage_fd, const char *id, int *ret_fd, struct err *e);
/* Remove it with its content. No error if there is none. */
int storage_drop(const struct state *s, const char *id, struct err *e);
