/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths in trees that others control, resolved by descriptor. Symbolic links are followed
 * only as if the tree's root were "/", magic links never. All return >= 0 or -errno.
 */
#pragma once

#include <sys/types.h>

/* Open below root as the sandbox would see it. O_CLOEXEC is added. */
int resolve_open(int root_fd, const char *path, int flags);
/* Open below dir_fd without any symbolic link on the way, and never above it. */
int resolve_beneath(int dir_fd, const char *path, int flags, mode_t mode);
/*
 * Make the directories of path that are missing, owned by uid and gid, and open the last
 * one with O_PATH. Existing ones are left as they are.
 */
int resolve_mkdirs(int root_fd, const char *path, mode_t mode, uid_t uid, gid_t gid);
/* Make the path's parents as above, and the last component an empty file if it is missing. */
int resolve_mkfile(int root_fd, const char *path, uid_t uid, gid_t gid);
