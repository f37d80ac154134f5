/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes_index.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"

#define INDEX_NAME "files.index"
#define INDEX_NEW  "files.index.new"

void changes_reader_init(struct changes_reader *r, int fd)
{
	r->fd = fd;
	r->at = 0;
	r->pos = r->have = 0;
	r->end = false;
}

/* Have n bytes at pos. 1, 0 at the end of the file, or -errno; -EIO where it ends too early. */
static int fill(struct changes_reader *r, size_t n)
{
	while (r->have - r->pos < n) {
		ssize_t got;

		if (r->pos) {
			memmove(r->buf, r->buf + r->pos, r->have - r->pos);
			r->have -= r->pos;
			r->pos = 0;
		}
		if (r->fd < 0)
			return 0;
		got = pread(r->fd, r->buf + r->have, sizeof r->buf - r->have, (off_t)r->at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return r->have ? -EIO : 0;
		r->have += (size_t)got;
		r->at += (uint64_t)got;
	}
	return 1;
}

int changes_reader_next(struct changes_reader *r)
{
	int k;

	if (r->end)
		return 0;
	k = fill(r, sizeof r->rec);
	if (k <= 0) {
		r->end = k == 0;
		return k;
	}
	memcpy(&r->rec, r->buf + r->pos, sizeof r->rec);
	k = fill(r, sizeof r->rec + r->rec.name_len);
	if (k <= 0)
		return k < 0 ? k : -EIO;
	r->name = (struct str){ r->buf + r->pos + sizeof r->rec, r->rec.name_len };
	r->pos += sizeof r->rec + r->rec.name_len;
	return 0;
}

void changes_writer_init(struct changes_writer *w, int dirfd, int old_fd)
{
	w->dirfd = dirfd;
	w->old_fd = old_fd;
	w->fd = FD_NONE;
	w->same = 0;
	w->len = 0;
}

void changes_writer_done(struct changes_writer *w)
{
	if (w->fd >= 0)
		(void)unlinkat(w->dirfd, INDEX_NEW, 0);
	fd_close(&w->fd);
}

static int flush(struct changes_writer *w)
{
	int r = io_write_all(w->fd, w->buf, w->len);

	w->len = 0;
	return r;
}

static int begin(struct changes_writer *w)
{
	uint64_t at = 0;

	w->fd = openat(w->dirfd, INDEX_NEW, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return -errno;
	while (at < w->same) {
		size_t want = sizeof w->buf;
		ssize_t got;
		int r;

		if (want > w->same - at)
			want = (size_t)(w->same - at);
		got = pread(w->old_fd, w->buf, want, (off_t)at);
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		w->len = (size_t)got;
		at += (uint64_t)got;
		r = flush(w);
		if (r < 0)
			return r;
	}
	return 0;
}

int changes_writer_put(struct changes_writer *w, const struct changes_rec *rec, struct str name)
{
	int r = changes_writer_drop(w);

	if (r == 0 && sizeof w->buf - w->len < sizeof *rec + name.n)
		r = flush(w);
	if (r < 0)
		return r;
	memcpy(w->buf + w->len, rec, sizeof *rec);
	memcpy(w->buf + w->len + sizeof *rec, name.p, name.n);
	w->len += sizeof *rec + name.n;
	return 0;
}

int changes_writer_keep(struct changes_writer *w, const struct changes_reader *r)
{
	if (w->fd >= 0)
		return changes_writer_put(w, &r->rec, r->name);
	w->same += sizeof r->rec + r->name.n;
	return 0;
}

int changes_writer_drop(struct changes_writer *w)
{
	return w->fd < 0 ? begin(w) : 0;
}

int changes_writer_commit(struct changes_writer *w, int *fd)
{
	int r;

	if (w->fd < 0)
		return 0;
	r = flush(w);
	if (r < 0)
		return r;
	if (renameat(w->dirfd, INDEX_NEW, w->dirfd, INDEX_NAME) < 0)
		return -errno;
	fd_close(fd);
	*fd = TAKE_FD(w->fd);
	return 0;
}
