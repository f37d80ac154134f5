/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/file_entry.h"

#include <errno.h>
#include <stdbool.h>

static bool next_text(struct str *rest, struct str *ret)
{
	const char *end = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;

	if (!end)
		return false;
	*ret = (struct str){ rest->p, (size_t)(end - rest->p) };
	*rest = (struct str){ end + 1, rest->n - ret->n - 1 };
	return true;
}

/* All digits of one base; at most 19 of them, so it cannot overflow. */
static bool number(struct str text, unsigned base, uint64_t *ret)
{
	uint64_t v = 0;

	if (!text.n || text.n > 19)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		unsigned digit = (unsigned)(text.p[i] - '0');

		if (text.p[i] < '0' || digit >= base)
			return false;
		v = v * base + digit;
	}
	*ret = v;
	return true;
}

/* "1794970843.5992914720": find prints ten digits, of which nine count. A time before 1970 is 0. */
static bool time_of(struct str text, uint64_t *ret_ns)
{
	const char *dot = text.n ? memchr(text.p, '.', text.n) : NULL;
	struct str whole = { text.p, dot ? (size_t)(dot - text.p) : text.n };
	struct str part = { dot ? dot + 1 : text.p, dot ? text.n - whole.n - 1 : 0 };
	uint64_t seconds, ns = 0;

	*ret_ns = 0;
	if (whole.n && whole.p[0] == '-')
		return true;
	if (!number(whole, 10, &seconds) || seconds > UINT64_MAX / 1000000000u - 1)
		return false;
	if (part.n > 9)
		part.n = 9;
	if (part.n && !number(part, 10, &ns))
		return false;
	for (size_t i = part.n; i < 9; i++)
		ns *= 10;
	*ret_ns = seconds * 1000000000u + ns;
	return true;
}

int file_entry_next(struct str *rest, struct file_entry *ret)
{
	struct str f[FILE_ENTRY_FIELDS];
	struct file_entry e = { 0 };
	uint64_t mode;

	if (!rest->n)
		return 0;
	for (int i = 0; i < FILE_ENTRY_FIELDS; i++)
		if (!next_text(rest, &f[i]))
			return -EBADMSG;
	if (f[0].n != 1 || f[1].n != 1 || !number(f[2], 10, &e.size) || !number(f[3], 8, &mode) ||
	    mode > 07777 || !time_of(f[7], &e.mtime_ns) || !f[9].n || f[9].p[0] != '/')
		return -EBADMSG;
	e.type = f[0].p[0];
	e.target = f[1].p[0];
	e.mode = (unsigned)mode;
	e.permissions = f[4];
	e.owner = f[5];
	e.group = f[6];
	e.link = f[8];
	e.path = f[9];
	e.metadata = f[10];
	*ret = e;
	return 1;
}

/* A slash sorts before every other byte, so a directory's entries follow the directory. */
int file_entry_compare(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++) {
		int x = a.p[i] == '/' ? 0 : (unsigned char)a.p[i];
		int y = b.p[i] == '/' ? 0 : (unsigned char)b.p[i];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
}
