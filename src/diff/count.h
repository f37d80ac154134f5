/* SPDX-License-Identifier: Apache-2.0 */
/* How much was changed, summed up over many changes. */
#pragma once

#include "diff/patch.h"

struct diff_totals {
	uint64_t files, added, removed, binary;
	uint64_t bytes; /* by which the files grew or shrank, summed up */
	uint64_t omitted;
	uint64_t host_changed; /* not in the patch for that reason */
};

void diff_add_totals(struct diff_totals *t, const struct diff_entry *en,
		     const struct patch_counts *n);
/* Add all changes of a mount, except those that diff_is_identity(). dest: the mount's place inside.
 */
int diff_add_all(struct diff_totals *t, const char *dest, const struct diff *d, struct err *e);
/* Host names, /etc/hosts and machine ids differ in every sandbox: we wrote them. */
bool diff_is_identity(const char *dest, const struct diff_entry *en);
