/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes as a patch that `git apply` takes: unified hunks, and binary files as deflated
 * literals in both directions. Git knows files, links and one bit of their mode; whatever else
 * has changed (directories, devices, owners, other bits) is left out and counted. A patch is always
 * against what the sandbox started from (start.h), so that git apply finds what the host has done
 * since, and does not undo it.
 */
#pragma once

#include <stdio.h>

#include "diff/compare.h"

struct patch_counts {
	uint64_t added, removed; /* lines */
	bool binary;
	bool omitted;	      /* something of the change is not in the patch */
	bool omitted_content; /* its content, above 1 GiB */
	bool host_changed;    /* nothing was written: what the sandbox started from is not known */
};

/* One change; prefix stands before its names ("" or "a/b/"). */
int patch_write(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
		struct patch_counts *ret, struct err *e);
/* Only the numbers. */
int patch_count(const struct diff *d, const struct diff_entry *en, struct patch_counts *ret,
		struct err *e);
