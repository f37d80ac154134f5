/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/mnt.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>

#include "base/cleanup.h"
#include "sys/process/raw.h"

int mnt_new(const char *type, const struct mnt_opt *opts, unsigned attrs)
{
	auto_close int fs = raw_fsopen(type);
	int fd;

	if (fs < 0)
		return -errno;
	for (; opts && opts->key; opts++) {
		unsigned cmd = opts->value ? RAW_FSCONFIG_STRING : RAW_FSCONFIG_FLAG;

		if (raw_fsconfig(fs, cmd, opts->key, opts->value) < 0)
			return -errno;
	}
	if (raw_fsconfig(fs, RAW_FSCONFIG_CREATE, NULL, NULL) < 0)
		return -errno;
	fd = raw_fsmount(fs, attrs);
	return fd < 0 ? -errno : fd;
}

static int bind_with(int fd, unsigned attrs, int recursive, int userns_fd)
{
	struct raw_mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	unsigned flags = RAW_AT_EMPTY_PATH | (recursive ? RAW_AT_RECURSIVE : 0);

	if (userns_fd >= 0) {
		attr.attr_set |= RAW_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
	}
	return raw_mount_setattr(fd, "", flags, &attr) < 0 ? -errno : 0;
}

static int bind_at(int dirfd, const char *path, unsigned attrs, int recursive, int userns_fd)
{
	unsigned flags = RAW_OPEN_TREE_CLONE | O_CLOEXEC | RAW_AT_EMPTY_PATH |
			 (recursive ? RAW_AT_RECURSIVE : 0);
	auto_close int fd = raw_open_tree(dirfd, path, flags);
	int r;

	if (fd < 0)
		return -errno;
	r = bind_with(fd, attrs, recursive, userns_fd);
	return r < 0 ? r : TAKE_FD(fd);
}

int mnt_bind(int fd, unsigned attrs, int recursive, int userns_fd)
{
	return bind_at(fd, "", attrs, recursive, userns_fd);
}

int mnt_bind_path(const char *path, unsigned attrs, int recursive, int userns_fd)
{
	return bind_at(AT_FDCWD, path, attrs, recursive, userns_fd);
}

int mnt_copy_at(int dir_fd, const char *name)
{
	auto_close int at = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return at < 0 ? -errno : mnt_copy(at, true);
}

int mnt_copy(int mount_fd, bool recursive)
{
	unsigned flags = RAW_OPEN_TREE_CLONE | O_CLOEXEC | RAW_AT_EMPTY_PATH;
	int fd = raw_open_tree(mount_fd, "", recursive ? flags | RAW_AT_RECURSIVE : flags);

	return fd < 0 ? -errno : fd;
}

int mnt_make_readonly(int mount_fd)
{
	struct raw_mount_attr attr = { .attr_set = RAW_ATTR_RDONLY };

	return raw_mount_setattr(mount_fd, "", RAW_AT_EMPTY_PATH, &attr) < 0 ? -errno : 0;
}

int mnt_seal(int mount_fd)
{
	auto_close int fs = raw_fspick(mount_fd);

	if (fs < 0 || raw_fsconfig(fs, RAW_FSCONFIG_FLAG, "ro", NULL) < 0)
		return -errno;
	return raw_fsconfig(fs, RAW_FSCONFIG_RECONFIGURE, NULL, NULL) < 0 ? -errno : 0;
}

int mnt_attach(int mount_fd, int target_fd)
{
	unsigned flags = RAW_MOVE_F_EMPTY | RAW_MOVE_T_EMPTY;

	return raw_move_mount(mount_fd, "", target_fd, "", flags) < 0 ? -errno : 0;
}

int mnt_attach_at(int mount_fd, int dir_fd, const char *name)
{
	auto_close int target = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return target < 0 ? -errno : mnt_attach(mount_fd, target);
}

int mnt_cover(int mount_fd, const char *name)
{
	char from[32];

	(void)snprintf(from, sizeof from, "/proc/self/fd/%d", mount_fd);
	return mount(from, name, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int mnt_make_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

int mnt_pivot(int root_fd)
{
	if (fchdir(root_fd) < 0 || raw_pivot_root(".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}
