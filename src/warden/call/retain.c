/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/retain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Short writes that alternate between the streams must not cost much more than their bytes. */
enum { CHUNK_MIN = 256, CHUNK_MOST = 16 * 1024, OVERHEAD = 2 };

struct retain_chunk {
	struct retain_chunk *next;
	uint64_t offset; /* offset of its first byte */
	uint8_t stream;
	size_t len, cap;
	char data[];
};

void retain_init(struct retain *r, size_t most)
{
	*r = (struct retain){ .most = most };
}

static void drop_first(struct retain *r)
{
	struct retain_chunk *c = r->first;

	r->first = c->next;
	if (!r->first)
		r->last = NULL;
	r->base = c->offset + c->len;
	r->cost -= sizeof *c + c->cap;
	free(c);
}

void retain_drop(struct retain *r)
{
	while (r->first)
		drop_first(r);
	r->base = r->end;
}

void retain_done(struct retain *r)
{
	retain_drop(r);
}

bool retain_is_full(const struct retain *r, uint64_t needed)
{
	if (needed == UINT64_MAX)
		return false;
	return r->cost > OVERHEAD * r->most || r->end - needed >= r->most;
}

void retain_trim(struct retain *r, uint64_t needed)
{
	/* A reader that has read a whole chunk is still at the chunk's end. */
	while (r->first && r->first->offset + r->first->len < needed &&
	       (r->cost > OVERHEAD * r->most || r->end - r->base > r->most))
		drop_first(r);
}

static struct retain_chunk *chunk_new(struct retain *r, uint8_t stream, size_t wanted)
{
	size_t cap = wanted < CHUNK_MIN ? CHUNK_MIN : wanted > CHUNK_MOST ? CHUNK_MOST : wanted;
	struct retain_chunk *c = malloc(sizeof *c + cap);

	if (!c)
		return NULL;
	*c = (struct retain_chunk){ .offset = r->end, .stream = stream, .cap = cap };
	if (r->last)
		r->last->next = c;
	else
		r->first = c;
	r->last = c;
	r->cost += sizeof *c + cap;
	return c;
}

int retain_add(struct retain *r, uint8_t stream, struct str data)
{
	while (data.n) {
		struct retain_chunk *c = r->last;
		size_t n;

		if (!c || c->stream != stream || c->len == c->cap)
			c = chunk_new(r, stream, data.n);
		if (!c)
			return -ENOMEM;
		n = c->cap - c->len < data.n ? c->cap - c->len : data.n;
		memcpy(c->data + c->len, data.p, n);
		c->len += n;
		r->end += n;
		data = (struct str){ data.p + n, data.n - n };
	}
	return 0;
}

static void find(const struct retain *r, struct retain_cursor *at)
{
	struct retain_chunk *c = r->first;

	if (at->offset < r->base)
		at->offset = r->base;
	if (at->offset > r->end)
		at->offset = r->end;
	while (c && c->next && c->offset + c->len <= at->offset)
		c = c->next;
	at->chunk = c;
	at->pos = c ? (size_t)(at->offset - c->offset) : 0;
}

bool retain_peek(const struct retain *r, struct retain_cursor *at, uint8_t *ret_stream,
		 struct str *ret)
{
	if (!at->chunk)
		find(r, at);
	if (!at->chunk)
		return false;
	if (at->pos == at->chunk->len) {
		if (!at->chunk->next)
			return false;
		at->chunk = at->chunk->next;
		at->pos = 0;
	}
	*ret_stream = at->chunk->stream;
	*ret = (struct str){ at->chunk->data + at->pos, at->chunk->len - at->pos };
	return true;
}

void retain_take(struct retain_cursor *at, size_t n)
{
	at->pos += n;
	at->offset += n;
}
