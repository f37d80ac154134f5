/* SPDX-License-Identifier: Apache-2.0 */
#include "store/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/limits.h"
#include "store/storage_file.h"
#include "sys/files/btrfs.h"
#include "sys/files/loopdev.h"
#include "sys/files/voltree.h"

bool storage_exists(const struct state *s)
{
	struct stat st;

	return geteuid() == 0 && (fstatat(s->fd, STORAGE_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
				  fstatat(s->fd, STORAGE_IMAGE, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool is_storage(int fd)
{
	return btrfs_is(fd) && faccessat(fd, STORAGE_MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_dir(const struct state *s)
{
	int fd = openat(s->fd, STORAGE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int explain_mount(int err, struct err *e)
{
	(void)err_sys(e, err, "mount the storage");
	if (err == ENODEV)
		return err_hint(e, "this kernel has no btrfs: sudo modprobe btrfs");
	if (err == ENOENT || err == ENXIO)
		return err_hint(e, "there are no loop devices here: sudo modprobe loop");
	return err_code(e, "storage.not_mounted", NULL);
}

static int mount_locked(const struct state *s, int image, struct err *e)
{
	auto_close int device = FD_NONE, now = FD_NONE;
	char path[sizeof s->dir + 16], name[64];

	if (mkdirat(s->fd, STORAGE_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make '%s/%s'", s->dir, STORAGE_DIR);
	now = open_dir(s);
	if (now >= 0 && btrfs_is(now))
		return 0;
	device = loopdev_share(image, name, sizeof name);
	if (device < 0)
		return explain_mount(-device, e);
	(void)snprintf(path, sizeof path, "%s/%s", s->dir, STORAGE_DIR);
	if (mount(name, path, "btrfs", MS_NOSUID | MS_NODEV | MS_NOATIME, "discard=async") < 0)
		return explain_mount(errno, e);
	return 0;
}

int storage_mount(const struct state *s, struct err *e)
{
	auto_close int image = openat(s->fd, STORAGE_IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (image < 0)
		return err_sys(e, errno, "open '%s/%s'", s->dir, STORAGE_IMAGE);
	/* A concurrent process waits here and then finds it done. */
	if (flock(image, LOCK_EX) < 0)
		return err_sys(e, errno, "lock '%s/%s'", s->dir, STORAGE_IMAGE);
	r = mount_locked(s, image, e);
	/*
	 * The loop device keeps the same open file, and with it the lock, as long as it exists:
	 * unlock.
	 */
	(void)flock(image, LOCK_UN);
	return r;
}

/* Its file is gone, or the link's file system; we change nothing in it. */
static int explain_gone(const struct state *s, struct err *e)
{
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(s->fd, STORAGE_DIR, target, sizeof target - 1);

	if (n < 0) {
		(void)err_set(e, ERR_UNAVAILABLE, "the storage's file '%s/%s' is not there", s->dir,
			      STORAGE_IMAGE);
		return err_code(e, "storage.file_gone", NULL);
	}
	target[n] = '\0';
	(void)err_set(e, ERR_UNAVAILABLE, "the storage at '%.300s' is not there", target);
	return err_code(e, "storage.gone", NULL);
}

int storage_open(const struct state *s, int *ret_fd, struct err *e)
{
	auto_close int fd = FD_NONE;

	*ret_fd = FD_NONE;
	if (!storage_exists(s))
		return 0;
	fd = open_dir(s);
	if ((fd < 0 || !is_storage(fd)) &&
	    faccessat(s->fd, STORAGE_IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		if (storage_mount(s, e) < 0)
			return -1;
		fd_close(&fd);
		fd = open_dir(s);
	}
	if (fd < 0 || !is_storage(fd))
		return explain_gone(s, e);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int storage_inspect(const struct state *s, struct storage_info *ret, struct err *e)
{
	auto_close int fd = FD_NONE;
	struct statvfs st;
	ssize_t n;

	*ret = (struct storage_info){ .image = false };
	if (storage_open(s, &fd, e) < 0)
		return -1;
	if (fd < 0)
		return 0;
	n = readlinkat(s->fd, STORAGE_DIR, ret->path, sizeof ret->path - 1);
	ret->image = n < 0;
	if (n < 0)
		(void)snprintf(ret->path, sizeof ret->path, "%s/%s", s->dir, STORAGE_IMAGE);
	ret->quota = btrfs_quota_is_on(fd) == 1;
	if (fstatvfs(fd, &st) < 0)
		return err_sys(e, errno, "look at the storage");
	ret->size = (uint64_t)st.f_blocks * st.f_frsize;
	ret->free = (uint64_t)st.f_bavail * st.f_frsize;
	return 1;
}

int storage_sweep_groups(const struct state *s, int storage_fd, struct err *e)
{
	int r;

	if (storage_fd < 0 || faccessat(s->fd, STORAGE_IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = btrfs_forget_gone(storage_fd);
	return r < 0 ? err_sys(e, -r, "look for quota groups in the storage") : r;
}

int storage_add(const struct state *s, const char *id, char *path, size_t size, struct err *e)
{
	auto_close int fd = FD_NONE;
	int r;

	path[0] = '\0';
	if (storage_open(s, &fd, e) < 0)
		return -1;
	if (fd < 0)
		return 0;
	r = io_mkdir(fd, STORAGE_LAYERS, 0700);
	if (r == 0 && mkdirat(fd, id, 0700) < 0)
		r = -errno;
	if (r < 0) {
		(void)err_sys(e, -r, "make a directory in '%s/%s'", s->dir, STORAGE_DIR);
		return r == -ENOSPC ? err_code(e, "storage.full", NULL) : -1;
	}
	if (snprintf(path, size, "%s/%s/%s", s->dir, STORAGE_DIR, id) >= (int)size)
		return err_sys(e, ENAMETOOLONG, "make a directory in the storage");
	return 0;
}

int storage_find(int storage_fd, const char *id, int *ret_fd, struct err *e)
{
	*ret_fd = FD_NONE;
	if (storage_fd < 0)
		return 0;
	*ret_fd = openat(storage_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 && errno != ENOENT ? err_sys(e, errno, "open '%s' in the storage", id)
					      : 0;
}

int storage_drop(const struct state *s, const char *id, struct err *e)
{
	auto_close int fd = FD_NONE;
	int r;

	if (storage_open(s, &fd, e) < 0)
		return -1;
	if (fd < 0)
		return 0;
	r = voltree_remove(fd, id);
	failpoint("storage.dropped");
	return r < 0 ? err_sys(e, -r, "remove '%s/%s/%s'", s->dir, STORAGE_DIR, id) : 0;
}
