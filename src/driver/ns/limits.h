/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver/ns/ns.h"

/*
 * Write the limits of a sandbox to its existing groups. A limit that cannot be enforced is an error
 * that names it; with best_effort it is only noted in the cell.
 */
int limits_apply(const struct cell_spec *s, struct ns_cell *c, struct err *e);
/*
 * Make a subvolume `name` for a generation in the sandbox's storage directory; quota: with the disk
 * limit. Returns its descriptor or -errno.
 */
int limits_volume(const struct cell_spec *s, const char *name, bool quota);
