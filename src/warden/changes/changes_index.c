/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_index.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"

#define INDEX_NAME "files.index"
#define INDEX_NEW  "files.index.new"

enum { FIRST_ROOM = 1024 };

void changes_index_done(struct changes_index *x)
{
	fd_close(&x->fd);
	free(x->mem);
	x->mem = NULL;
	x->len = 0;
}

void changes_reader_init(struct changes_reader *r, const struct changes_index *x)
{
	r->fd = x->fd;
	r->at = 0;
	r->buf = x->mem;
	r->pos = 0;
	r->have = x->len;
	r->end = false;
	r->chunk = NULL;
}

void changes_reader_done(struct changes_reader *r)
{
	free(r->chunk);
	r->chunk = NULL;
}

/* Move the rest to the start of the chunk, and read more. 1, 0 at the end, or -errno. */
static int read_more(struct changes_reader *r)
{
	ssize_t got;

	if (r->fd < 0)
		return 0;
	if (!r->chunk)
		r->chunk = malloc(CHANGES_INDEX_CHUNK);
	if (!r->chunk)
		return -ENOMEM;
	r->buf = r->chunk;
	r->have -= r->pos;
	memmove(r->chunk, r->chunk + r->pos, r->have);
	r->pos = 0;
	do
		got = pread(r->fd, r->chunk + r->have, CHANGES_INDEX_CHUNK - r->have, (off_t)r->at);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : 0;
	r->have += (size_t)got;
	r->at += (uint64_t)got;
	return 1;
}

/* Make n bytes available at pos. 1, 0 at the end of the index, or -errno; -EIO if it ends early. */
static int fill(struct changes_reader *r, size_t n)
{
	while (r->have - r->pos < n) {
		int k = read_more(r);

		if (k <= 0)
			return k == 0 && r->have > r->pos ? -EIO : k;
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

void changes_writer_init(struct changes_writer *w, int dirfd, const struct changes_index *old)
{
	*w = (struct changes_writer){ .dirfd = dirfd, .old = old, .fd = FD_NONE };
}

void changes_writer_done(struct changes_writer *w)
{
	if (w->fd >= 0)
		(void)unlinkat(w->dirfd, INDEX_NEW, 0);
	fd_close(&w->fd);
	free(w->buf);
	w->buf = NULL;
}

static int flush(struct changes_writer *w)
{
	int r;

	if (w->fd < 0)
		w->fd = openat(w->dirfd, INDEX_NEW, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return -errno;
	r = io_write_all(w->fd, w->buf, w->len);
	w->len = 0;
	return r;
}

/*
 * Make room for n bytes at len. The buffer grows up to a chunk; then its content goes to the file.
 */
static int reserve(struct changes_writer *w, size_t n)
{
	size_t cap = w->cap ? w->cap : FIRST_ROOM;
	int r = n > CHANGES_INDEX_CHUNK - w->len ? flush(w) : 0;
	char *grown;

	if (r < 0 || n > CHANGES_INDEX_CHUNK)
		return r < 0 ? r : -E2BIG;
	if (w->cap - w->len >= n)
		return 0;
	while (cap - w->len < n)
		cap *= 2;
	grown = realloc(w->buf, cap);
	if (!grown)
		return -ENOMEM;
	w->buf = grown;
	w->cap = cap;
	return 0;
}

static void add(struct changes_writer *w, const void *p, size_t n)
{
	memcpy(w->buf + w->len, p, n);
	w->len += n;
}

static int copy_file(struct changes_writer *w)
{
	uint64_t at = 0;

	while (at < w->same) {
		size_t want = w->same - at < CHANGES_INDEX_CHUNK ? (size_t)(w->same - at)
								 : CHANGES_INDEX_CHUNK;
		int r = reserve(w, want);
		ssize_t got;

		if (r < 0)
			return r;
		got = pread(w->old->fd, w->buf + w->len, want, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		w->len += (size_t)got;
		at += (uint64_t)got;
	}
	return 0;
}

static int begin(struct changes_writer *w)
{
	int r;

	w->begun = true;
	if (w->old->fd >= 0)
		return copy_file(w);
	r = reserve(w, (size_t)w->same);
	if (r == 0 && w->same)
		add(w, w->old->mem, (size_t)w->same);
	return r;
}

int changes_writer_put(struct changes_writer *w, const struct changes_rec *rec, struct str name)
{
	int r = changes_writer_drop(w);

	if (r == 0)
		r = reserve(w, sizeof *rec + name.n);
	if (r < 0)
		return r;
	add(w, rec, sizeof *rec);
	add(w, name.p, name.n);
	return 0;
}

int changes_writer_keep(struct changes_writer *w, const struct changes_reader *r)
{
	if (w->begun)
		return changes_writer_put(w, &r->rec, r->name);
	w->same += sizeof r->rec + r->name.n;
	return 0;
}

int changes_writer_drop(struct changes_writer *w)
{
	return w->begun ? 0 : begin(w);
}

static int commit_file(struct changes_writer *w, struct changes_index *x)
{
	int r = flush(w);

	if (r < 0)
		return r;
	if (renameat(w->dirfd, INDEX_NEW, w->dirfd, INDEX_NAME) < 0)
		return -errno;
	changes_index_done(x);
	x->fd = TAKE_FD(w->fd);
	return 0;
}

int changes_writer_commit(struct changes_writer *w, struct changes_index *x)
{
	char *exact;

	if (!w->begun)
		return 0;
	if (w->fd >= 0)
		return commit_file(w, x);
	/* If the block cannot shrink, it stays as it is. */
	exact = w->len ? realloc(w->buf, w->len) : NULL;
	if (exact)
		w->buf = exact;
	if (x->fd >= 0)
		(void)unlinkat(w->dirfd, INDEX_NAME, 0);
	changes_index_done(x);
	x->mem = TAKE_PTR(w->buf);
	x->len = w->len;
	return 0;
}

int changes_index_file(int dirfd)
{
	int fd = openat(dirfd, INDEX_NEW, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	(void)unlinkat(dirfd, INDEX_NEW, 0);
	return fd;
}

int changes_writer_finish(struct changes_writer *w)
{
	return w->begun ? flush(w) : 0;
}

void changes_index_replace(struct changes_index *x, int dirfd, int fd)
{
	if (x->fd >= 0)
		(void)unlinkat(dirfd, INDEX_NAME, 0);
	changes_index_done(x);
	x->fd = fd;
}
