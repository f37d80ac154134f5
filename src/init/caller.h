/* SPDX-License-Identifier: Apache-2.0 */
/* The rights, root and directories of a thread inside, to look up a path as that thread would. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { CALLER_GROUPS = 256 };

struct caller {
	uid_t uid;
	gid_t gid;
	uint64_t caps; /* effective, over our own user namespace */
	gid_t groups[CALLER_GROUPS], own_groups[CALLER_GROUPS];
	int ngroups, own_ngroups;
	uid_t own_uid;
	gid_t own_gid;
	int own_root; /* O_PATH */
};

/* Read the thread's rights. 0 or -errno. */
int caller_open(int tid, struct caller *ret);
/* Open the directory that the thread's dirfd stands for, as O_PATH; or -errno. */
int caller_dir(int tid, int dirfd);
/* Change to the thread's root. Afterwards there may be no /proc. 0 or -errno. */
int caller_root(int tid);
/* Access files with the rights of the caller, until caller_leave(). 0 or -errno. */
int caller_become(const struct caller *c);
/* Once after a caller_open() that succeeded. 0, or -errno where our own root is out of reach. */
int caller_leave(struct caller *c);

/* Parse the ids of /proc/TID/status. 0 or -EBADMSG. For tests. */
int caller_parse(const char *status, struct caller *ret);
