/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/mount_line.h"

#include <string.h>

#include "base/cleanup.h"

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

void mount_line_unescape(char *s)
{
	char *out = s;

	for (; *s; out++) {
		if (s[0] == '\\' && is_octal(s + 1)) {
			*out = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*out = *s++;
		}
	}
	*out = '\0';
}

/* "36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw,errors=continue" */
bool mount_line_cut(char *line, struct mount_line *ret)
{
	enum { ID, PARENT, DEVICE, ROOT, POINT, OPTIONS, OPTIONAL, FIELDS };
	char *save = NULL, *field[FIELDS], *at;

	for (int i = 0; i < FIELDS; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	*ret = (struct mount_line){ .id = field[ID], .options = field[OPTIONS] };
	for (at = field[OPTIONAL]; at && strcmp(at, "-") != 0; at = strtok_r(NULL, " ", &save))
		ret->propagation = field[OPTIONAL];
	ret->type = at ? strtok_r(NULL, " ", &save) : NULL;
	if (!ret->type)
		return false;
	mount_line_unescape(field[ROOT]);
	mount_line_unescape(field[POINT]);
	ret->root = field[ROOT];
	ret->point = field[POINT];
	return true;
}
