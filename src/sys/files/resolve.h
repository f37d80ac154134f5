/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolve paths by descriptor in trees that others control. Symbolic links are followed as if the
 * tree's root were "/"; magic links never. All return >= 0 or -errno.
 */
#pragma once

#include <sys/types.h>

/* Open below root, as the sandbox would see it. Adds O_CLOEXEC. */
int resolve_open(int root_fd, const char *path, int flags);
/* Open below dir_fd without following any symbolic link, and never above dir_fd. */
int resolve_beneath(int dir_fd, const char *path, int flags, mode_t mode);
/*
 * Make the missing directories of path, owned by uid and gid, and open the last one with O_PATH.
 * Existing directories stay as they are.
 */
int resolve_mkdirs(int root_fd, const char *path, mode_t mode, uid_t uid, gid_t gid);
/*
 * Make the path's parents like resolve_mkdirs(). Make the last component an empty file if missing.
 */
int resolve_mkfile(int root_fd, const char *path, uid_t uid, gid_t gid);
