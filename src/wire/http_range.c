/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http_range.h"

#include <errno.h>
#include <strings.h>

enum { RANGE_DIGITS = 18 };

/* Cut a number off the front of *text. False if there is none, or it is too long. */
static bool cut_number(struct str *text, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	while (n < text->n && text->p[n] >= '0' && text->p[n] <= '9') {
		if (n == RANGE_DIGITS)
			return false;
		*ret = *ret * 10 + (uint64_t)(text->p[n++] - '0');
	}
	text->p += n;
	text->n -= n;
	return n > 0;
}

/* "-N": the last N bytes. */
static int suffix_parse(struct str text, uint64_t size, uint64_t *ret_from, uint64_t *ret_n)
{
	uint64_t n;

	if (!cut_number(&text, &n) || text.n)
		return 0;
	if (n == 0 || size == 0)
		return -ERANGE;
	*ret_n = n < size ? n : size;
	*ret_from = size - *ret_n;
	return 1;
}

int http_range_parse(struct str value, uint64_t size, uint64_t *ret_from, uint64_t *ret_n)
{
	static const struct str unit = STR("bytes=");
	uint64_t from, to = UINT64_MAX;

	if (value.n <= unit.n || strncasecmp(value.p, unit.p, unit.n) != 0)
		return 0;
	value.p += unit.n;
	value.n -= unit.n;
	if (value.p[0] == '-')
		return suffix_parse((struct str){ value.p + 1, value.n - 1 }, size, ret_from,
				    ret_n);
	if (!cut_number(&value, &from) || value.n == 0 || value.p[0] != '-')
		return 0;
	value.p++;
	value.n--;
	if (value.n && (!cut_number(&value, &to) || value.n || to < from))
		return 0;
	if (from >= size)
		return -ERANGE;
	*ret_from = from;
	*ret_n = (to < size ? to + 1 : size) - from;
	return 1;
}

int http_range_put(struct buf *b, uint64_t from, uint64_t n, uint64_t size)
{
	if (n == 0)
		return buf_printf(b, "bytes */%llu", (unsigned long long)size);
	return buf_printf(b, "bytes %llu-%llu/%llu", (unsigned long long)from,
			  (unsigned long long)(from + n - 1), (unsigned long long)size);
}
