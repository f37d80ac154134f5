/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* True if '%' and the two bytes after it encode a character that must be encoded. */
static bool encoding_ok(struct str s, size_t at)
{
	int high = at + 2 < s.n ? hex(s.p[at + 1]) : -1;
	int low = at + 2 < s.n ? hex(s.p[at + 2]) : -1;
	int c = high * 16 + low;

	return high >= 0 && low >= 0 && c >= ' ' && c != 0x7f && c != '/' && c != '\\' &&
	       c != '%' && !is_unreserved(c);
}

/* "." and "..", also with parameters: some servers read "..;x" as "..". */
static bool is_dots(struct str segment)
{
	size_t n = 0;

	while (n < segment.n && segment.p[n] == '.')
		n++;
	return n >= 1 && n <= 2 && (n == segment.n || segment.p[n] == ';');
}

bool path_is_plain(struct str path)
{
	size_t start = 1;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	for (size_t i = 1; i <= path.n; i++) {
		if (i < path.n && path.p[i] == '%' && !encoding_ok(path, i))
			return false;
		if (i < path.n && path.p[i] == '\\')
			return false;
		if (i < path.n && path.p[i] != '/')
			continue;
		if (is_dots((struct str){ path.p + start, i - start }))
			return false;
		if (i == start && i < path.n)
			return false;
		start = i + 1;
	}
	return true;
}
