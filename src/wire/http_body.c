/* SPDX-License-Identifier: Apache-2.0 */
/* Parse bodies piece by piece (RFC 9112 6 and 7), without storing them. */
#include <errno.h>

#include "wire/http_lines.h"

enum { SIZE_DIGITS = 15 };

void http_body_init(struct http_body *b, const struct http_head *h)
{
	*b = (struct http_body){ .state = HTTP_S_DONE };
	switch (h->framing) {
	case HTTP_BODY_NONE:
		break;
	case HTTP_BODY_LENGTH:
		b->left = h->length;
		b->state = h->length ? HTTP_S_DATA : HTTP_S_DONE;
		break;
	case HTTP_BODY_CHUNKED:
		b->state = HTTP_S_SIZE;
		break;
	case HTTP_BODY_CLOSE:
		b->state = HTTP_S_CLOSE;
		break;
	}
}

static int bad(struct http_body *b, const char *why)
{
	b->state = HTTP_S_BAD;
	b->why = why;
	return -EBADMSG;
}

static int hex(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int size_byte(struct http_body *b, unsigned char c)
{
	int v = hex(c);

	if (v >= 0) {
		if (b->line == SIZE_DIGITS)
			return bad(b, "a chunk's size is too long");
		b->left = b->left << 4 | (unsigned)v;
		b->line++;
		return 0;
	}
	if (b->line == 0 || (c != ';' && c != '\r'))
		return bad(b, "a chunk's size is not a hexadecimal number");
	b->state = c == ';' ? HTTP_S_EXT : HTTP_S_SIZE_LF;
	return 0;
}

/* Extensions are ignored, but they cannot hide the end of a line. */
static int ext_byte(struct http_body *b, unsigned char c)
{
	if (++b->line > LIMIT_HTTP_CHUNK_LINE)
		return bad(b, "a chunk's extensions are too long");
	if (c == '\r')
		b->state = HTTP_S_SIZE_LF;
	else if (!http_is_value_byte(c))
		return bad(b, "a chunk's extension has a control character");
	return 0;
}

static int size_end(struct http_body *b, unsigned char c)
{
	if (c != '\n')
		return bad(b, "a CR stands alone");
	b->state = b->left ? HTTP_S_CHUNK : HTTP_S_TRAILER;
	b->line = 0;
	return 0;
}

static int chunk_end(struct http_body *b, unsigned char c)
{
	if (c != (b->state == HTTP_S_CHUNK_CR ? '\r' : '\n'))
		return bad(b, "a chunk is not followed by CRLF");
	b->state = b->state == HTTP_S_CHUNK_CR ? HTTP_S_CHUNK_LF : HTTP_S_SIZE;
	b->line = 0;
	return 0;
}

static int trailer_line_end(struct http_body *b)
{
	if (b->line == 0)
		b->state = HTTP_S_DONE;
	else if (!b->named)
		return bad(b, "a trailer has no colon");
	b->line = 0;
	b->named = false;
	return 0;
}

static int trailer_byte(struct http_body *b, unsigned char c)
{
	bool after_cr = b->last == '\r';

	if (++b->trailer > LIMIT_HTTP_HEAD)
		return bad(b, "the trailers are too long");
	b->last = c;
	if (after_cr)
		return c == '\n' ? trailer_line_end(b) : bad(b, "a CR stands alone");
	if (c == '\r')
		return 0;
	if (!b->named && c == ':' && b->line > 0)
		b->named = true;
	else if (b->named ? !http_is_value_byte(c) : !http_is_tchar(c))
		return bad(b, "a trailer is malformed");
	b->line++;
	return 0;
}

/* One byte of the framing. */
static int framing_byte(struct http_body *b, unsigned char c)
{
	switch (b->state) {
	case HTTP_S_SIZE:
		return size_byte(b, c);
	case HTTP_S_EXT:
		return ext_byte(b, c);
	case HTTP_S_SIZE_LF:
		return size_end(b, c);
	case HTTP_S_CHUNK_CR:
	case HTTP_S_CHUNK_LF:
		return chunk_end(b, c);
	case HTTP_S_TRAILER:
		return trailer_byte(b, c);
	case HTTP_S_DATA:
	case HTTP_S_CLOSE:
	case HTTP_S_CHUNK:
	case HTTP_S_DONE:
	case HTTP_S_BAD:
		break;
	}
	return bad(b, b->why);
}

static int data(struct http_body *b, struct str *in, struct str *ret)
{
	size_t n = in->n;

	if (b->state != HTTP_S_CLOSE && n > b->left)
		n = (size_t)b->left;
	*ret = (struct str){ in->p, n };
	in->p += n;
	in->n -= n;
	if (b->state == HTTP_S_CLOSE)
		return HTTP_DATA;
	b->left -= n;
	if (b->left == 0)
		b->state = b->state == HTTP_S_DATA ? HTTP_S_DONE : HTTP_S_CHUNK_CR;
	return HTTP_DATA;
}

int http_body_next(struct http_body *b, struct str *in, struct str *ret)
{
	*ret = STR_NONE;
	for (;;) {
		if (b->state == HTTP_S_DONE)
			return HTTP_END;
		if (b->state == HTTP_S_BAD)
			return -EBADMSG;
		if (in->n == 0)
			return HTTP_MORE;
		if (b->state == HTTP_S_DATA || b->state == HTTP_S_CLOSE || b->state == HTTP_S_CHUNK)
			return data(b, in, ret);
		if (framing_byte(b, (unsigned char)in->p[0]) < 0)
			return -EBADMSG;
		in->p++;
		in->n--;
	}
}

int http_body_eof(const struct http_body *b)
{
	return b->state == HTTP_S_DONE || b->state == HTTP_S_CLOSE ? 0 : -EBADMSG;
}
