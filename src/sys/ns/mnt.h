/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts by descriptor. A file system or a bind is first a detached mount with its final
 * attributes, and is then attached. So no mount is ever visible without its attributes. All return
 * a descriptor or 0, or -errno.
 */
#pragma once

#include <stdbool.h>

/* One option of a file system; a flag if value is NULL. A NULL key ends the list. */
struct mnt_opt {
	const char *key, *value;
};

/* A new file system, detached. attrs: RAW_ATTR_*. */
int mnt_new(const char *type, const struct mnt_opt *opts, unsigned attrs);
/* A detached bind of fd (O_PATH); recursive: with the mounts below it. */
int mnt_bind(int fd, unsigned attrs, int recursive, int userns_fd);
/* A detached bind of an absolute path in the current mount namespace. */
int mnt_bind_path(const char *path, unsigned attrs, int recursive, int userns_fd);
/* A detached copy of the mount at dir_fd/name with all mounts below it. */
int mnt_copy_at(int dir_fd, const char *name);
/* A detached copy of a mount, with or without the mounts below it. */
int mnt_copy(int mount_fd, bool recursive);
/* Make a mount read-only; the superblock stays as it is. */
int mnt_make_readonly(int mount_fd);
/*
 * Make the whole file system read-only, wherever it is mounted and whatever is open in it. -EBUSY:
 * a file is open for writing.
 */
int mnt_seal(int mount_fd);
/* Attach a detached mount on the file or directory that target_fd refers to. */
int mnt_attach(int mount_fd, int target_fd);
/* Attach below dir_fd at an existing name. */
int mnt_attach_at(int mount_fd, int dir_fd, const char *name);
/*
 * Show the attached mount of mount_fd, with its attributes, also at a name in the working
 * directory. No other process may be able to change that directory. One system call instead of
 * five.
 */
int mnt_cover(int mount_fd, const char *name);
/* From now on, our mounts do not reach the host, and the host's mounts do not reach us. */
int mnt_make_private(void);
/* Make the mount at root_fd the root, and detach the old root. */
int mnt_pivot(int root_fd);
