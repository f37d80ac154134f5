/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as the place of sandboxes: its file system, and overlays with their upper there. */
#pragma once

#include <stdint.h>

#include "sys/probe.h"

enum probe_quota {
	PROBE_QUOTA_NONE,
	PROBE_QUOTA_BTRFS_OFF, /* btrfs: can have it, is not enabled */
	PROBE_QUOTA_BTRFS,
	PROBE_QUOTA_PROJECT, /* ext4, xfs, f2fs mounted with it */
};

struct probe_storage {
	char type[32]; /* of the file system */
	uint64_t free_bytes, free_inodes;
	bool counts_inodes;
	int scratch; /* making a directory in it */
	int reflink; /* FICLONE */
	enum probe_quota quota;
	int overlay;	  /* as the driver mounts it, and written to */
	int not_volatile; /* the same without `volatile`, where that failed */
	int userxattr, metacopy;
	int idmap; /* an id-mapped mount of it; rootful only */
};

/* Of the options of a file system's superblock. */
bool probe_quota_is_project(struct str super);
/* dir exists. All that is made lies in a scratch directory below it and is removed. */
void probe_storage(struct probe_storage *ret, const char *dir, bool rootful);
