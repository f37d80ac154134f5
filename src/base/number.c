/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MILLI = 1000 };

/* Digits, and up to three more after a point, as thousandths. Returns the end, or NULL. */
static const char *decimal(const char *text, uint64_t *ret_milli)
{
	uint64_t n, part = 0;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return NULL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || __builtin_mul_overflow(n, (uint64_t)MILLI, &n))
		return NULL;
	if (*end == '.') {
		int unit = MILLI / 10;

		for (end++; *end >= '0' && *end <= '9' && unit; end++, unit /= 10)
			part += (uint64_t)(*end - '0') * (uint64_t)unit;
		if (unit == MILLI / 10 || (*end >= '0' && *end <= '9'))
			return NULL;
	}
	if (__builtin_add_overflow(n, part, ret_milli))
		return NULL;
	return end;
}

/* Powers of 1024, optionally followed by B or iB. -1: unknown unit. */
static int unit_shift(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *at = *unit ? strchr(letters, *unit >= 'a' ? *unit - 32 : *unit) : NULL;

	if (!*unit || strcmp(unit, "B") == 0)
		return 0;
	if (!at || (unit[1] && strcmp(unit + 1, "B") != 0 && strcmp(unit + 1, "iB") != 0))
		return -1;
	return 10 * (int)(at - letters + 1);
}

int size_parse(const char *text, uint64_t *ret_bytes)
{
	uint64_t milli = 0, bytes;
	const char *end = decimal(text, &milli);
	int shift = end ? unit_shift(end) : -1;

	if (shift < 0 || milli > UINT64_MAX >> (shift + 1))
		return -1;
	bytes = (milli << shift) / MILLI;
	/* Up to 2^53 a number is exact in JSON too. */
	if (bytes == 0 || bytes > (uint64_t)1 << 53)
		return -1;
	*ret_bytes = bytes;
	return 0;
}

int count_parse(const char *text, uint64_t *ret)
{
	uint64_t milli = 0;
	const char *end = decimal(text, &milli);

	if (!end || *end || strchr(text, '.') || milli == 0)
		return -1;
	*ret = milli / MILLI;
	return 0;
}

int number_parse(const char *text, uint64_t *ret_milli)
{
	uint64_t milli = 0;
	const char *end = decimal(text, &milli);

	if (!end || *end || milli == 0)
		return -1;
	*ret_milli = milli;
	return 0;
}

const char *number_size(uint64_t bytes, char out[NUMBER_TEXT])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)bytes / 1024;
	size_t u = 0;

	for (; v >= 1024 && u + 1 < sizeof units / sizeof *units; u++)
		v /= 1024;
	(void)snprintf(out, NUMBER_TEXT, v == (double)(uint64_t)v ? "%.0f %s" : "%.1f %s", v,
		       units[u]);
	return out;
}

const char *number_short(uint64_t bytes, char out[NUMBER_TEXT])
{
	static const char units[] = "BKMGTPE";
	double n = (double)bytes;
	int u = 0;

	while (n >= 1000 && units[u + 1]) {
		n /= 1024;
		u++;
	}
	(void)snprintf(out, NUMBER_TEXT, u && n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[u]);
	return out;
}
