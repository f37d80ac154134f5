/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT(b->max);
}

/* need is at most max + 1: the ceiling and the terminator. */
static size_t next_cap(const struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : 64;

	while (cap < need)
		cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
	return cap;
}

int buf_reserve(struct buf *b, size_t n)
{
	size_t cap;
	char *data;

	if (n > b->max - b->len)
		return -E2BIG;
	if (b->data && b->len + n + 1 <= b->cap)
		return 0;
	cap = next_cap(b, b->len + n + 1);
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	data[b->len] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

void buf_grew(struct buf *b, size_t n)
{
	b->len += n;
	b->data[b->len] = '\0';
}

int buf_add(struct buf *b, const void *p, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0 || n == 0)
		return r;
	memcpy(b->data + b->len, p, n);
	buf_grew(b, n);
	return 0;
}

int buf_add_str(struct buf *b, struct str s)
{
	return buf_add(b, s.p, s.n);
}

int buf_add_c(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = buf_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

void buf_cut(struct buf *b, size_t len)
{
	if (!b->data)
		return;
	b->len = len;
	b->data[len] = '\0';
}

void buf_shift(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

void buf_clear(struct buf *b)
{
	buf_cut(b, 0);
}

void buf_trim(struct buf *b, size_t keep)
{
	if (b->len == 0 && b->cap > keep)
		buf_done(b);
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	char *data = b->data;

	if (ret_len)
		*ret_len = b->len;
	*b = (struct buf)BUF_INIT(b->max);
	return data;
}
