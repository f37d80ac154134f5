/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/procfs.h"

#include <string.h>

#include "t_ns.h"

static void processes_and_listed_names_are_shown(void)
{
	static const char *const shown[] = { "1", "4194304", "self", "cpuinfo", "stat", "sys" };
	static const char *const hidden[] = { "locks",	  "1x",	      "kcore", "fs",
					      "cmdline",  "vmstat",   "Self",  "cpuinf",
					      "cpuinfo2", "bus",      "irq",   "cgroups",
					      "pressure", "diskstats" };

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		CHECK(procfs_shows(shown[i]));
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		CHECK(!procfs_shows(hidden[i]));
}

static void links_need_no_cover_and_directories_get_one(void)
{
	struct dirent de = { .d_type = DT_LNK, .d_name = "device-tree" };
	bool is_dir = true;

	CHECK(!procfs_covers(-1, &de, &is_dir));
	de.d_type = DT_DIR;
	is_dir = false;
	CHECK(procfs_covers(-1, &de, &is_dir) && is_dir);
	de.d_type = DT_REG;
	CHECK(procfs_covers(-1, &de, &is_dir) && !is_dir);
}

static void an_entry_that_cannot_be_looked_at_is_covered(void)
{
	struct dirent de = { .d_type = DT_UNKNOWN, .d_name = "locks" };
	bool is_dir = false;

	CHECK(procfs_covers(-1, &de, &is_dir) && !is_dir);
}

T_MAIN(T(processes_and_listed_names_are_shown), T(links_need_no_cover_and_directories_get_one),
       T(an_entry_that_cannot_be_looked_at_is_covered))
