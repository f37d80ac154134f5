/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "base/cleanup.h"

static bool is_tail(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

/* Length by the first byte; 0 for bytes that cannot start a character. */
static size_t len_of(uint8_t c)
{
	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

size_t utf8_next(struct str s, uint32_t *ret_cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = (const uint8_t *)s.p;
	size_t n = s.n ? len_of(p[0]) : 0;
	uint32_t cp;

	if (n == 0 || n > s.n)
		return 0;
	if (n == 1) {
		*ret_cp = p[0];
		return 1;
	}
	cp = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (!is_tail(p[i]))
			return 0;
		cp = cp << 6 | (p[i] & 0x3fu);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_cp = cp;
	return n;
}

/* Most text is ASCII: check eight bytes at a time while no high bit is set. */
static size_t ascii_run(struct str s)
{
	size_t i = 0;
	uint64_t v;

	for (; i + sizeof v <= s.n; i += sizeof v) {
		memcpy(&v, s.p + i, sizeof v);
		if (v & 0x8080808080808080ull)
			break;
	}
	while (i < s.n && (uint8_t)s.p[i] < 0x80)
		i++;
	return i;
}

bool utf8_valid(struct str s)
{
	while (s.n > 0) {
		size_t n = ascii_run(s);
		uint32_t cp;

		if (n == 0)
			n = utf8_next(s, &cp);
		if (n == 0)
			return false;
		s.p += n;
		s.n -= n;
	}
	return true;
}

bool utf8_is_ignorable(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{ 0x00ad, 0x00ad },   { 0x034f, 0x034f },   { 0x061c, 0x061c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },   { 0x202a, 0x202e },   { 0x2060, 0x206f },
		{ 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 },   { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return false;
}
