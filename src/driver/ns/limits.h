/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver/driver.h"

/*
 * Write the limits of a sandbox to its groups, which are there. One that cannot be enforced is
 * an error that names it, or with best_effort noted in the cell.
 */
int limits_apply(const struct cell_spec *s, struct cell *c, struct err *e);
/*
 * A subvolume `name` for a generation in the sandbox's directory of the pool; quota: with the
 * limit on disk. A descriptor of it or -errno.
 */
int limits_volume(const struct cell_spec *s, const char *name, bool quota);
