/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>

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
	/* Between asking for a free one and taking it somebody else may. */
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
