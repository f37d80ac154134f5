/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc of a sandbox is an allow-list.
 *
 * Many files of /proc describe the whole machine, and some carry data: a lock that one sandbox
 * takes is a line in every /proc/locks. So a sandbox sees only its processes and the files that
 * procfs_shows() names. The launch lists the new procfs and covers every other entry: a file with
 * an empty file, a directory with an empty directory. Verify lists it again from outside. An entry
 * that appears later, when the host loads a module, is not covered.
 *
 * The empty file is on the sandbox's own tmpfs. The host's /dev/null would be one inode that all
 * sandboxes could lock.
 *
 * /proc/sys is an allow-list too (knobs.c): a read-only tmpfs with copies of the values that
 * programs read, and with binds of the parts that the kernel keeps per namespace.
 */
#pragma once

#include <dirent.h>

#include "driver/ns/launch.h"

/* Name of the empty file in its tmpfs, as mountinfo shows it. */
#define PROCFS_EMPTY "/none"

/* True if a sandbox may see this entry of /proc. */
bool procfs_shows(const char *name);
/* True if this entry needs a cover; *ret_is_dir: the cover is a directory. dir_fd: /proc. */
bool procfs_covers(int dir_fd, const struct dirent *de, bool *ret_is_dir);
/* The mount that covers an entry. */
struct fixed_mount procfs_cover(const char *path, bool is_dir);

/* The mount for /proc/sys, detached; from: the kernel's. -errno with t->what. */
int knobs_new(struct tree *t, int from);
/* The binds on it, after it is attached to t->proc_fd. */
int knobs_bind(struct tree *t);
/* What verify must find at /proc/sys and below. Returns the number. */
int knobs_expect(struct fixed_mount *out);
