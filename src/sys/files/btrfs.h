/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btrfs: subvolumes, snapshots and size limits, using only kernel ioctls. All return >= 0 or
 * -errno; most need root.
 *
 * A subvolume looks like a directory but is a separate tree. Files cannot be renamed across its
 * edge (EXDEV), and a snapshot takes the same time whatever its size. Quota group 0/ID belongs to
 * subvolume ID; a write over its limit fails with EDQUOT. Metadata counts, so the limit also bounds
 * the number of files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True if fd is on btrfs. */
bool btrfs_is(int fd);
/* True if fd is the root of a subvolume. */
bool btrfs_is_subvolume(int fd);

/* Make an empty subvolume `name` (one component) in dirfd. */
int btrfs_subvolume(int dirfd, const char *name);
/*
 * Make `name` in dirfd a snapshot of the subvolume with root src_fd. It holds everything written so
 * far, synced or not; writers need not stop. Same file system only (-EXDEV); -EINVAL if src_fd is
 * not the root of a subvolume. Nested subvolumes become empty directories.
 */
int btrfs_snapshot(int src_fd, int dirfd, const char *name, bool read_only);
/* Remove the subvolume `name` with its content. The kernel frees the space in the background. */
int btrfs_delete(int dirfd, const char *name);
/* The id of the subvolume that contains fd. */
int btrfs_id(int fd, uint64_t *ret_id);

enum btrfs_quota { BTRFS_QUOTA_FULL, BTRFS_QUOTA_SIMPLE };
/*
 * Enable quota for the whole file system; no error if quota is already on. Simple quotas (Linux
 * 6.7) charge an extent to the subvolume that wrote it and cost almost nothing. But older kernels
 * can then no longer mount the file system. -EOPNOTSUPP if this kernel lacks them.
 */
int btrfs_quota_enable(int fd, enum btrfs_quota kind);
/* 1 if quota is on, 0 if not. */
int btrfs_quota_is_on(int fd);
/* Limit the size of subvolume `id` in bytes; 0: no limit. -ENOTCONN if quota is off. */
int btrfs_limit(int fd, uint64_t id, uint64_t max_bytes);

struct btrfs_usage {
	uint64_t bytes; /* size as of the last commit (within 30 s) */
	uint64_t max;	/* 0: no limit */
};
int btrfs_usage(int fd, uint64_t id, struct btrfs_usage *ret);
/* Remove the quota group of a deleted subvolume. -EBUSY until its space is free. */
int btrfs_forget(int fd, uint64_t id);
/*
 * Remove the quota groups of all deleted subvolumes and return their number. Older kernels keep
 * them.
 */
int btrfs_forget_gone(int fd);
