/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/blob.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"

enum { CHUNK = 64 * 1024 };

void blob_done(struct blob *b)
{
	buf_done(&b->data);
	fd_close(&b->fd);
}

/* Reads exactly b->size bytes of the file; -ESTALE if it became shorter. */
static int read_pieces(const struct blob *b, int (*fn)(void *ctx, const void *p, size_t n),
		       void *ctx)
{
	auto_free char *mem = malloc(CHUNK);
	int r = mem ? 0 : -ENOMEM;

	for (uint64_t at = 0; at < b->size && r == 0;) {
		uint64_t want = b->size - at < CHUNK ? b->size - at : CHUNK;
		ssize_t n = pread(b->fd, mem, want, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		r = fn(ctx, mem, (size_t)n);
		at += (uint64_t)n;
	}
	return r;
}

static int add_to_hash(void *ctx, const void *p, size_t n)
{
	sha1_add(ctx, p, n);
	return 0;
}

static void begin_hash(struct sha1 *s, uint64_t size)
{
	char head[40];
	int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size);

	sha1_init(s);
	sha1_add(s, head, (size_t)n + 1);
}

int blob_hash(struct blob *b)
{
	struct sha1 s;
	int r = 0;

	begin_hash(&s, b->size);
	if (b->fd >= 0)
		r = read_pieces(b, add_to_hash, &s);
	else
		sha1_add(&s, b->data.data, b->data.len);
	sha1_end(&s, b->oid);
	return r;
}

struct passing {
	struct sha1 hash;
	int (*fn)(void *ctx, const void *p, size_t n);
	void *ctx;
};

static int pass(void *ctx, const void *p, size_t n)
{
	struct passing *s = ctx;

	sha1_add(&s->hash, p, n);
	return s->fn(s->ctx, p, n);
}

int blob_each(const struct blob *b, int (*fn)(void *ctx, const void *p, size_t n), void *ctx)
{
	struct passing s = { .fn = fn, .ctx = ctx };
	char oid[SHA1_HEX];
	int r;

	if (b->fd < 0)
		return b->data.len ? fn(ctx, b->data.data, b->data.len) : 0;
	begin_hash(&s.hash, b->size);
	r = read_pieces(b, pass, &s);
	sha1_end(&s.hash, oid);
	return r < 0 ? r : strcmp(oid, b->oid) == 0 ? 0 : -ESTALE;
}

static int load_file(struct blob *b)
{
	struct stat st;

	if (fstat(b->fd, &st) < 0)
		return -errno;
	b->size = (uint64_t)st.st_size;
	b->binary = b->size > LIMIT_DIFF_TEXT;
	if (!b->binary) {
		int r = io_read_all(b->fd, &b->data);

		if (r < 0 && r != -E2BIG)
			return r;
		b->binary = r == -E2BIG; /* the file is growing */
		if (r == 0) {
			b->size = b->data.len;
			fd_close(&b->fd);
			b->binary = b->data.len && memchr(b->data.data, 0, b->data.len);
		} else {
			buf_clear(&b->data);
		}
	}
	return 0;
}

int blob_load(const struct diff *d, const struct diff_entry *en, bool new, struct blob *ret)
{
	const struct stack_node *n = new ? &en->new : &en->old;
	auto_done(blob_done) struct blob b = { .fd = FD_NONE, .data = BUF_INIT(LIMIT_DIFF_TEXT) };
	int r = 0;

	b.none = !S_ISREG(n->mode) && !S_ISLNK(n->mode);
	if (S_ISLNK(n->mode)) {
		r = diff_read_link(new ? d->new : d->old, n, new ? en->path : diff_old_path(en),
				   &b.data);
		b.size = b.data.len;
	} else if (S_ISREG(n->mode)) {
		r = b.fd = new ? diff_open_new(d, en) : diff_open_old(d, en);
		if (r >= 0)
			r = load_file(&b);
	}
	if (r < 0)
		return r;
	*ret = b;
	b = (struct blob){ .fd = FD_NONE };
	return 0;
}
