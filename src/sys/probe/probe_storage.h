/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as a place for sandboxes: its file system, and overlays with their upper there. */
#pragma once

#include <stdint.h>

#include "sys/probe/probe.h"

enum probe_quota {
	PROBE_QUOTA_NONE,
	PROBE_QUOTA_BTRFS_OFF, /* btrfs without quota enabled */
	PROBE_QUOTA_BTRFS,
	PROBE_QUOTA_PROJECT, /* ext4, xfs or f2fs mounted with project quota */
};

struct probe_storage {
	char type[32]; /* of the file system */
	uint64_t free_bytes, free_inodes;
	bool counts_inodes;
	int scratch; /* making a directory there */
	int reflink; /* FICLONE */
	enum probe_quota quota;
	int overlay;	  /* mounting as the driver does, and writing */
	int not_volatile; /* the same without `volatile`, if that failed */
	int userxattr, metacopy;
	int idmap; /* an id-mapped mount of it; rootful only */
};

/* Parse the options of a file system's superblock. */
bool probe_quota_is_project(struct str super);
/* dir exists. Works in a scratch directory below it, and removes that again. */
void probe_storage(struct probe_storage *ret, const char *dir, bool rootful);
