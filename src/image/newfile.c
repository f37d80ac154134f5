/* SPDX-License-Identifier: Apache-2.0 */
#include "image/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { BLOCK = 4096, MODE = 0600 };

static int open_named(struct newfile *f, int dirfd, const char *name)
{
	f->named = true;
	f->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	return f->fd < 0 ? -errno : 0;
}

int newfile_open(struct newfile *f, int dirfd, const char *name, bool named)
{
	*f = (struct newfile)NEWFILE_INIT;
	if (named)
		return open_named(f, dirfd, name);
	f->fd = openat(dirfd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, MODE);
	if (f->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return -errno;
	return open_named(f, dirfd, name);
}

static bool is_zero(const char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/*
 * How many bytes of data, which starts at offset `at`, are all holes or all content. Works block by
 * block. A part of a block can be skipped too, because unwritten bytes are zero.
 */
static size_t run_of(struct str data, uint64_t at, bool *ret_hole)
{
	size_t n = 0;

	while (n < data.n) {
		size_t left = data.n - n, to_edge = BLOCK - (at + n) % BLOCK;
		size_t part = left < to_edge ? left : to_edge;
		bool hole = is_zero(data.p + n, part);

		if (n && hole != *ret_hole)
			break;
		*ret_hole = hole;
		n += part;
	}
	return n;
}

static int write_at(int fd, struct str data, uint64_t at)
{
	while (data.n) {
		ssize_t n = pwrite(fd, data.p, data.n, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data = (struct str){ data.p + n, data.n - (size_t)n };
		at += (uint64_t)n;
	}
	return 0;
}

int newfile_write(struct newfile *f, struct str data)
{
	while (data.n) {
		size_t n = run_of(data, f->at, &f->hole);
		int r = f->hole ? 0 : write_at(f->fd, (struct str){ data.p, n }, f->at);

		if (r < 0)
			return r;
		f->at += n;
		data = (struct str){ data.p + n, data.n - n };
	}
	return 0;
}

int newfile_end(struct newfile *f)
{
	return f->hole && ftruncate(f->fd, (off_t)f->at) < 0 ? -errno : 0;
}

int newfile_commit(struct newfile *f, int dirfd, const char *name)
{
	char path[32];

	if (f->named)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
	if (linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	f->named = true;
	return 0;
}

void newfile_drop(struct newfile *f, int dirfd, const char *name)
{
	if (f->fd >= 0 && f->named)
		(void)unlinkat(dirfd, name, 0);
	fd_close(&f->fd);
}
