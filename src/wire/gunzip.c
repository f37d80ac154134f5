/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/limits.h"

enum {
	GUNZIP_WINDOW = 16 * 1024,
	/* 16 more than the window's bits: zlib then reads and writes gzip only. */
	GZIP_BITS = 15 + 16,
	GZIP_LEVEL = 1,
	GZIP_MEMORY = 8,
	/* Short inputs have large ratios and do no harm. */
	RATIO_FREE = 64 * 1024,
};

int gunzip_init(struct gunzip *g, uint64_t most)
{
	z_stream *z = calloc(1, sizeof *z);

	*g = (struct gunzip){ .most = most ? most : LIMIT_GUNZIP };
	g->window = malloc(GUNZIP_WINDOW);
	if (!z || !g->window || inflateInit2(z, GZIP_BITS) != Z_OK) {
		free(z);
		free(g->window);
		g->window = NULL;
		return -ENOMEM;
	}
	g->z = z;
	return 0;
}

void gunzip_done(struct gunzip *g)
{
	if (g->z)
		(void)inflateEnd(g->z);
	free(g->z);
	free(g->window);
	*g = (struct gunzip){ 0 };
}

static int fails(struct gunzip *g, int err, const char *why)
{
	g->why = why;
	return err;
}

static int check_size(struct gunzip *g)
{
	if (g->out > g->most)
		return fails(g, -E2BIG, "the decoded body is too large");
	if (g->out > RATIO_FREE && g->out / LIMIT_GUNZIP_RATIO > g->in)
		return fails(g, -E2BIG, "the body is compressed too much");
	return 0;
}

int gunzip_next(struct gunzip *g, struct str *in, struct str *ret)
{
	z_stream *z = g->z;
	unsigned given = in->n > GUNZIP_WINDOW ? GUNZIP_WINDOW : (unsigned)in->n;
	size_t used, made;
	int r;

	*ret = STR_NONE;
	if (g->ended)
		return in->n ? fails(g, -EBADMSG, "bytes follow the compressed body") : GUNZIP_END;
	z->next_in = (unsigned char *)(uintptr_t)in->p;
	z->avail_in = given;
	z->next_out = (unsigned char *)g->window;
	z->avail_out = GUNZIP_WINDOW;
	r = inflate(z, Z_NO_FLUSH);
	used = given - z->avail_in;
	made = GUNZIP_WINDOW - z->avail_out;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return r == Z_MEM_ERROR ? -ENOMEM
					: fails(g, -EBADMSG, "the body is not valid gzip");
	*in = used < in->n ? (struct str){ in->p + used, in->n - used } : STR_NONE;
	g->in += used;
	g->out += made;
	g->ended = r == Z_STREAM_END;
	r = check_size(g);
	if (r < 0)
		return r;
	*ret = (struct str){ g->window, made };
	if (made)
		return GUNZIP_DATA;
	return g->ended && in->n == 0 ? GUNZIP_END : GUNZIP_MORE;
}

int gzip_put(struct buf *out, struct str text)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)text.p,
		       .avail_in = (unsigned)text.n };
	size_t room;
	int r;

	if (text.n > LIMIT_HTTP_ANSWER)
		return -E2BIG;
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	room = deflateBound(&z, text.n);
	r = buf_reserve(out, room);
	if (r == 0) {
		z.next_out = (unsigned char *)out->data + out->len;
		z.avail_out = (unsigned)room;
		if (deflate(&z, Z_FINISH) == Z_STREAM_END)
			buf_grew(out, room - z.avail_out);
		else
			r = -EIO;
	}
	(void)deflateEnd(&z);
	return r;
}
