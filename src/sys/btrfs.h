/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btrfs: subvolumes, their snapshots, and a limit on what each may hold. By the kernel's ioctls
 * alone. All return >= 0 or -errno; most need root.
 *
 * A subvolume looks like a directory but is a tree of its own: files are not renamed across its
 * edge (EXDEV), and a snapshot of it takes the same time however much it holds. Quota group
 * 0/ID belongs to the subvolume ID; whoever would pass its limit gets EDQUOT. Metadata counts,
 * so the number of files is bounded too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Does what fd refers to lie on btrfs? */
bool btrfs_is(int fd);
/* Is it the root of a subvolume? */
bool btrfs_is_subvolume(int fd);

/* A new, empty subvolume `name`, one component, in the directory dirfd. */
int btrfs_subvolume(int dirfd, const char *name);
/*
 * `name` in dirfd becomes a copy of the subvolume whose root src_fd is, as it is in this moment:
 * what was written by then is in it, whether synced or not. Files that are being written need
 * not be stopped. Same file system only (-EXDEV); -EINVAL where src_fd is no subvolume's root.
 * Subvolumes inside src are not part of it: they become empty directories.
 */
int btrfs_snapshot(int src_fd, int dirfd, const char *name, bool read_only);
/* Remove the subvolume `name`, whatever it holds. The space is given back in the background. */
int btrfs_delete(int dirfd, const char *name);
/* Of the subvolume that fd lies in. */
int btrfs_id(int fd, uint64_t *ret_id);

enum btrfs_quota { BTRFS_QUOTA_FULL, BTRFS_QUOTA_SIMPLE };
/*
 * Quota for the whole file system; content with what is on already. Simple quotas (Linux 6.7)
 * charge an extent to whoever wrote it and cost next to nothing, but older kernels cannot
 * mount the file system any more; -EOPNOTSUPP where this kernel has none.
 */
int btrfs_quota_enable(int fd, enum btrfs_quota kind);
/* 1 where quota is on, 0 where not. */
int btrfs_quota_is_on(int fd);
/* Limit what subvolume `id` holds, in bytes; 0: no limit. -ENOTCONN where quota is off. */
int btrfs_limit(int fd, uint64_t id, uint64_t max_bytes);

struct btrfs_usage {
	uint64_t bytes; /* held, as of the last commit (within 30 s) */
	uint64_t max;	/* 0: no limit */
};
int btrfs_usage(int fd, uint64_t id, struct btrfs_usage *ret);
/* Forget the quota group of a subvolume that is gone. -EBUSY until its space was given back. */
int btrfs_forget(int fd, uint64_t id);
/* The same for all that are gone, in the whole file system; how many. Older kernels leave them. */
int btrfs_forget_gone(int fd);
