/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name_alias.h"

#include <stdint.h>

#include "base/utf8.h"

/* One character in lower case, or 0 at the end of the name or the start of its stream. */
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
		if (!utf8_is_ignorable(c))
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
