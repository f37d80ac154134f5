/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body_out.h"

#include <errno.h>

#include "base/limits.h"
#include "wire/http_write.h"

enum { OUT_KEEP = 4096, OUT_FRAMES = 64 * 1024 };

void body_out_init(struct http_body_out *b)
{
	/* A whole answer, or a window with one write above it; and room for heads and chunks. */
	*b = (struct http_body_out){ .out = BUF_INIT(LIMIT_HTTP_ANSWER + OUT_FRAMES) };
}

void body_out_done(struct http_body_out *b)
{
	buf_done(&b->out);
	buf_done(&b->next);
}

size_t body_out_unsent(const struct http_body_out *b)
{
	return b->out.len - b->sent + b->next.len;
}

/* Move the unsent bytes to the front when that is cheap. */
static void compact(struct http_body_out *b)
{
	if (b->sent == 0 || b->sent < b->out.len - b->sent)
		return;
	buf_shift(&b->out, b->sent);
	b->sent = 0;
}

int body_out_add(struct http_body_out *b, struct str data)
{
	int r = 0;

	if (data.n == 0)
		return 0;
	compact(b);
	switch (b->framing) {
	case HTTP_OUT_NONE:
		return 0;
	case HTTP_OUT_LENGTH:
		if (data.n > b->left)
			return -E2BIG;
		r = buf_add_str(&b->out, data);
		if (r == 0)
			b->left -= data.n;
		return r;
	case HTTP_OUT_CHUNKED:
		return http_put_chunk(&b->out, data);
	case HTTP_OUT_RAW:
		break;
	}
	return buf_add_str(&b->out, data);
}

void body_out_take(struct http_body_out *b, struct buf *body)
{
	size_t max = body->max;

	b->next = *body;
	*body = (struct buf)BUF_INIT(max);
}

int body_out_end(struct http_body_out *b)
{
	if (b->framing == HTTP_OUT_LENGTH && b->left)
		return -ENODATA;
	return b->framing == HTTP_OUT_CHUNKED ? http_put_last_chunk(&b->out) : 0;
}

struct str body_out_front(struct http_body_out *b)
{
	if (b->sent == b->out.len && b->next.len) {
		size_t max = b->out.max;

		buf_done(&b->out);
		b->out = b->next;
		b->out.max = max;
		b->next = (struct buf)BUF_INIT(0);
		b->sent = 0;
	}
	return buf_behind(&b->out, b->sent);
}

void body_out_wrote(struct http_body_out *b, size_t n)
{
	b->sent += n;
	if (b->sent < b->out.len)
		return;
	buf_clear(&b->out);
	b->sent = 0;
	buf_trim(&b->out, OUT_KEEP);
}
