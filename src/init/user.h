/* SPDX-License-Identifier: Apache-2.0 */
/* Who a command runs as, by the sandbox's own /etc/passwd and /etc/group. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { USER_GROUPS = 64 };

struct user {
	char name[64];
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS];
	int ngroups;
	char home[256];
	char shell[256];
};

/* ref: a name, a uid, or uid:gid. -ENOENT where there is no such name. */
int user_find(const char *ref, struct user *ret);
/*
 * Look ref up, or be content with what was found last where ref and both files are the same: for
 * init, once, before it makes a child; user_recall() in the child then costs nothing.
 */
void user_remember(const char *ref);
/* user_find(), or what is remembered of the same ref. */
int user_recall(const char *ref, struct user *ret);
