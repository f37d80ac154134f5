/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_mountinfo.h"

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static bool parse(struct str line, struct mountinfo *ret)
{
	char id[24];
	struct str field;

	if (!str_copy(id, sizeof id, probe_until(&line, ' ')))
		return false;
	ret->id = strtoull(id, NULL, 10);
	(void)probe_until(&line, ' ');
	(void)probe_until(&line, ' ');
	ret->root = probe_until(&line, ' ');
	ret->point = probe_until(&line, ' ');
	ret->options = probe_until(&line, ' ');
	do
		field = probe_until(&line, ' ');
	while (field.n && !str_is(field, "-"));
	ret->type = probe_until(&line, ' ');
	ret->source = probe_until(&line, ' ');
	ret->super = probe_until(&line, ' ');
	return field.n && ret->type.n;
}

bool mountinfo_next(struct str *rest, struct mountinfo *ret)
{
	struct str line;

	while (probe_line(rest, &line))
		if (parse(line, ret))
			return true;
	return false;
}

bool mountinfo_find(struct str text, uint64_t id, struct mountinfo *ret)
{
	while (mountinfo_next(&text, ret))
		if (ret->id == id)
			return true;
	return false;
}
