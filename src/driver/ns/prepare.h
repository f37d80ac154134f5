/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver/driver.h"

/*
 * Make the upper and work directories of a new sandbox, and what every sandbox has of its
 * own in them: mount points, host name, hosts, machine id. They lie in a directory that no
 * sandbox has written to yet, so plain names are safe here.
 *
 * Ids on disk are those inside, whatever the sandbox's range: so layers can be shared. A setuid
 * file of root inside is one of root outside there, and the directory must be closed to all.
 */
int prepare_uppers(const struct cell_spec *s, struct err *e);

/*
 * The uppers of the next generation, in `next`: empty, with the attributes of what they lie
 * over; none for mounts that stay the same. What an earlier attempt has left is removed.
 */
int prepare_next(const struct cell_spec *s, const bool *same, unsigned generation, struct err *e);
