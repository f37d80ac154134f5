/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/mount_line.h"

#include "t.h"

static bool cut(const char *text, struct mount_line *m)
{
	static char line[512];

	(void)snprintf(line, sizeof line, "%s", text);
	return mount_line_cut(line, m);
}

static void a_line_is_split(void)
{
	struct mount_line m;

	CHECK(cut("36 35 98:0 /sub /mnt\\040x rw,nosuid - ext3 /dev/root rw", &m));
	CHECK_STR(m.id, "36");
	CHECK_STR(m.root, "/sub");
	CHECK_STR(m.point, "/mnt x");
	CHECK_STR(m.options, "rw,nosuid");
	CHECK_STR(m.type, "ext3");
	CHECK(!m.propagation);
}

static void optional_fields_are_seen(void)
{
	struct mount_line m;

	CHECK(cut("36 35 98:0 / /mnt rw shared:1 master:2 - ext3 /dev/root rw", &m));
	CHECK_STR(m.propagation, "shared:1");
	CHECK_STR(m.type, "ext3");
}

static void malformed_lines_are_refused(void)
{
	struct mount_line m;

	CHECK(!cut("", &m) && !cut("36 35 98:0 / /mnt rw", &m));
	CHECK(!cut("36 35 98:0 / /mnt rw shared:1", &m) && !cut("36 35 98:0 / /mnt rw -", &m));
}

static void only_complete_escapes_are_decoded(void)
{
	struct mount_line m;

	CHECK(cut("1 0 0:1 / /a\\134b\\9\\04 rw - t s o", &m));
	CHECK_STR(m.point, "/a\\b\\9\\04");
}

T_MAIN(T(a_line_is_split), T(optional_fields_are_seen), T(malformed_lines_are_refused),
       T(only_complete_escapes_are_decoded))
