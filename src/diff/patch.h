/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes changes as a patch for `git apply`: unified hunks, and binary files as deflated literals
 * in both directions. Git knows files, links and one mode bit. All other changes (directories,
 * devices, owners, other bits) are left out and counted. A patch is always relative to what the
 * sandbox started from (start.h), so that git apply detects later host changes instead of undoing
 * them.
 */
#pragma once

#include <stdio.h>

#include "diff/compare.h"

struct patch_counts {
	uint64_t added, removed; /* lines */
	bool binary;
	bool omitted;	      /* part of the change is not in the patch */
	bool omitted_content; /* content above 1 GiB */
	bool host_changed;    /* nothing was written: the sandbox's starting content is unknown */
};

/* Writes one change; prefix precedes its names ("" or "a/b/"). */
int patch_write(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
		struct patch_counts *ret, struct err *e);
/* Only counts. */
int patch_count(const struct diff *d, const struct diff_entry *en, struct patch_counts *ret,
		struct err *e);
