/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/filecopy.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int copy_range(int from, int to, off_t at, off_t end, char *chunk)
{
	while (at < end) {
		size_t want = end - at < FILECOPY_CHUNK ? (size_t)(end - at) : FILECOPY_CHUNK;
		ssize_t n = pread(from, chunk, want, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0; /* the file is shorter than fstat said */
		for (ssize_t done = 0; done < n;) {
			ssize_t w = pwrite(to, chunk + done, (size_t)(n - done), at + done);

			if (w < 0 && errno != EINTR)
				return -errno;
			done += w > 0 ? w : 0;
		}
		at += n;
	}
	return 0;
}

int filecopy_data(int from, int to, off_t size, char *chunk, bool *clone)
{
	off_t at = 0;
	int r = 0;

	if (size == 0 || (*clone && ioctl(to, FICLONE, from) == 0))
		return 0;
	*clone &= errno != EOPNOTSUPP && errno != EXDEV && errno != ENOTTY;
	while (r == 0 && at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = at; /* a file system without support for holes */
		hole = lseek(from, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			hole = size;
		r = copy_range(from, to, data, hole, chunk);
		at = hole;
	}
	if (r == 0 && ftruncate(to, size) < 0)
		r = -errno;
	return r;
}
