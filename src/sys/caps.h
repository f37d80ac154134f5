/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of commands. All of them count only in the sandbox's own user namespace. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* What root inside keeps: enough for package managers, sudo and servers; like Docker's. */
extern const uint64_t caps_root_inside;

/* Remove everything but `keep` from the bounding set, and all ambient ones. 0 or -errno. */
int caps_bound(uint64_t keep);
/* Permitted and effective become exactly `set`, inheritable empty. 0 or -errno. */
int caps_set(uint64_t set);
/* Make files as this user and group, with all capabilities that we have. 0 or -errno. */
int caps_files_as(uid_t uid, gid_t gid);
/* Let an exec keep all that we have although we are not root here. 0 or -errno. */
int caps_keep_over_exec(void);
