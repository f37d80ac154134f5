/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/content.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { CHUNK = 64 * 1024 };

/*
 * Offset of the next data at or after `at`; size if only a hole follows or the file system cannot
 * tell.
 */
static off_t next_data(int fd, off_t at, off_t size)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return data;
}

int content_same(int a, int b)
{
	auto_free char *mem = malloc(2 * (size_t)CHUNK);
	struct stat sa, sb;

	if (!mem)
		return -ENOMEM;
	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return -errno;
	if (sa.st_size != sb.st_size)
		return 0;
	for (off_t at = 0; at < sa.st_size;) {
		off_t da = next_data(a, at, sa.st_size), db = next_data(b, at, sa.st_size);
		ssize_t na, nb;

		at = da < db ? da : db;
		if (at >= sa.st_size)
			break;
		na = pread(a, mem, CHUNK, at);
		nb = pread(b, mem + CHUNK, CHUNK, at);
		if (na < 0 || nb < 0)
			return -errno;
		if (na != nb || memcmp(mem, mem + CHUNK, (size_t)na) != 0)
			return 0;
		if (na == 0)
			break; /* both were truncated meanwhile */
		at += na;
	}
	return 1;
}
