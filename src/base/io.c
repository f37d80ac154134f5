/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

enum { CHUNK = 16 * 1024 };

int io_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t w = write(fd, at, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

int io_read_exact(int fd, void *p, size_t n)
{
	char *at = p;

	while (n > 0) {
		ssize_t r = read(fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -ENODATA;
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

int io_read_all(int fd, struct buf *b)
{
	char chunk[CHUNK];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);
		int r;

		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = buf_add(b, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

int io_read_file(int dirfd, const char *name, struct buf *b)
{
	auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_read_all(fd, b);
}

int io_write_file(int dirfd, const char *name, const char *text)
{
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);
	ssize_t w;

	if (fd < 0)
		return -errno;
	w = write(fd, text, n);
	if (w < 0)
		return -errno;
	return (size_t)w == n ? 0 : -EIO;
}

int io_replace_file(int dirfd, const char *tmp, const char *name, struct str text)
{
	auto_close int fd =
		openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text.p, text.n);

	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

int io_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int io_mkdir(int dirfd, const char *name, mode_t mode)
{
	struct stat st;

	if (mkdirat(dirfd, name, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (fstatat(dirfd, name, &st, 0) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int io_mkdir_all(const char *path, mode_t mode)
{
	char part[LIMIT_PATH];
	size_t n = strlen(path);

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof part)
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= n; i++) {
		int r;

		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = io_mkdir(AT_FDCWD, part, mode);
		if (r < 0)
			return r;
	}
	return 0;
}
