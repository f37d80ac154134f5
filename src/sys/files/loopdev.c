/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/loopdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { TRIES = 64 };

static int configure(int fd, int file_fd)
{
	struct loop_config config = { .fd = (unsigned)file_fd,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

int loopdev_attach(int file_fd, char *path, size_t size)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return -errno;
	/* Another process may take the free device before we do. */
	for (int i = 0; i < TRIES; i++) {
		auto_close int fd = FD_NONE;
		int r, n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return -errno;
		if (snprintf(path, size, "/dev/loop%d", n) >= (int)size)
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		r = configure(fd, file_fd);
		if (r == 0)
			return TAKE_FD(fd);
		if (r != -EBUSY)
			return r;
	}
	return -EBUSY;
}

/* Each device in use has a directory in sysfs. */
static int open_if_backed(const char *name, const struct stat *file, char *path, size_t size)
{
	auto_close int fd = FD_NONE;
	struct loop_info64 info;

	if (strncmp(name, "loop", 4) != 0 || snprintf(path, size, "/dev/%s", name) >= (int)size)
		return -ENOENT;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
		return -ENOENT;
	if (info.lo_device != file->st_dev || info.lo_inode != file->st_ino)
		return -ENOENT;
	return TAKE_FD(fd);
}

int loopdev_share(int file_fd, char *path, size_t size)
{
	DIR *d = opendir("/sys/block");
	struct stat file;
	int r = -ENOENT;

	if (fstat(file_fd, &file) < 0)
		r = -errno;
	for (struct dirent *ent = d ? readdir(d) : NULL; ent && r == -ENOENT; ent = readdir(d))
		r = open_if_backed(ent->d_name, &file, path, size);
	if (d)
		(void)closedir(d);
	return r == -ENOENT ? loopdev_attach(file_fd, path, size) : r;
}
