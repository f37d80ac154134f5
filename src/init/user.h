/* SPDX-License-Identifier: Apache-2.0 */
/* The user that a command runs as, from the sandbox's own /etc/passwd and /etc/group. */
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

/* ref: a name, a uid, or uid:gid. -ENOENT if there is no such name. */
int user_find(const char *ref, struct user *ret);
/*
 * Look up ref, unless the last result is for the same ref and both files are unchanged. Init calls
 * it once before it makes a child, so that user_recall() in the child is cheap.
 */
void user_remember(const char *ref);
/* The remembered result for the same ref, or else user_find(). */
int user_recall(const char *ref, struct user *ret);
