/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of commands. They count only in the sandbox's own user namespace. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* What root inside keeps: enough for package managers, sudo and servers; as in Docker. */
extern const uint64_t caps_root_inside;

/* Remove everything but `keep` from the bounding set, and all ambient capabilities. 0 or -errno. */
int caps_bound(uint64_t keep);
/* The permitted set of this process. */
uint64_t caps_now(void);
/* Set permitted and effective to exactly `set`, and inheritable to empty. 0 or -errno. */
int caps_set(uint64_t set);
/* Set effective to `set`, as far as it is permitted; permitted stays. 0 or -errno. */
int caps_use(uint64_t set);
/* Create files as this user and group, and keep our capabilities. 0 or -errno. */
int caps_files_as(uid_t uid, gid_t gid);
/* Keep our capabilities across exec although we are not root here. 0 or -errno. */
int caps_keep_over_exec(void);
