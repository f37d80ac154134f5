/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over many changes. */
#pragma once

#include "diff/patch.h"

struct diff_totals {
	uint64_t files, added, removed, binary;
	uint64_t bytes; /* sum of the changes in file size */
	uint64_t omitted;
	uint64_t host_changed; /* left out of the patch for that reason */
};

void diff_add_totals(struct diff_totals *t, const struct diff_entry *en,
		     const struct patch_counts *n);
/* Adds all changes of a mount, except those with diff_is_identity(). dest: mount point inside. */
int diff_add_all(struct diff_totals *t, const char *dest, const struct diff *d, struct err *e);
/*
 * True for host name, /etc/hosts and machine id: cay wrote them, and they differ in every sandbox.
 */
bool diff_is_identity(const char *dest, const struct diff_entry *en);
