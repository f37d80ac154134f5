/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* Linux 6.3 */
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20 /* Linux 6.3 */
#endif

static int new_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

int memfd_program(const char *path, const char *name)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	auto_close int from = open(path, O_RDONLY | O_CLOEXEC);
	auto_close int to = FD_NONE;
	struct stat st;
	off_t left;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	to = new_memfd(name);
	if (to < 0)
		return to;
	for (left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		left -= n;
	}
	if (fchmod(to, 0555) < 0)
		return -errno;
	if (fcntl(to, F_ADD_SEALS, seals | F_SEAL_EXEC) < 0 && fcntl(to, F_ADD_SEALS, seals) < 0)
		return -errno;
	return TAKE_FD(to);
}

int memfd_shared(const char *name, size_t size)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	return TAKE_FD(fd);
}
