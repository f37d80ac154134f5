/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/self/mountinfo (proc_pid_mountinfo(5)). Pure; views into the text. */
#pragma once

#include <stdint.h>

#include "sys/probe/probe.h"

struct mountinfo {
	uint64_t id;
	struct str root, point; /* blanks are written as \040 */
	struct str options, type, source, super;
};

/* The next valid line; false at the end. */
bool mountinfo_next(struct str *rest, struct mountinfo *ret);
/* The mount with this id (statx, STATX_MNT_ID). */
bool mountinfo_find(struct str text, uint64_t id, struct mountinfo *ret);
