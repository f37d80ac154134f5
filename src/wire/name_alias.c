/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name_alias.h"

#include <stdint.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* Default_Ignorable_Code_Point of Unicode: casefold of Linux drops all of these, HFS+ some. */
static bool is_ignored(uint32_t c)
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

/* One character in lower case, or 0 where the name ends or its stream begins. */
static uint32_t next_char(struct str *rest)
{
	while (rest->n) {
		uint32_t c = 0;
		size_t n = utf8_next(*rest, &c);

		if (n == 0) {
			c = (unsigned char)rest->p[0];
			n = 1;
		}
		if (c == ':' || c == '\\')
			return 0;
		*rest = (struct str){ rest->p + n, rest->n - n };
		if (!is_ignored(c))
			return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
	}
	return 0;
}

bool name_is_alias(struct str name, const char *target)
{
	uint32_t c;

	for (; *target; target++)
		if (next_char(&name) != (unsigned char)*target)
			return false;
	do {
		c = next_char(&name);
	} while (c == '.' || c == ' ');
	return c == 0;
}

bool name_is_git(struct str name)
{
	return name_is_alias(name, ".git") || name_is_alias(name, "git~1");
}
