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
 *
 * In a pool a generation is one subvolume, with the uppers and `work` in it; quota: it gets the
 * limit on disk.
 */
int prepare_uppers(const struct cell_spec *s, bool quota, struct err *e);

/*
 * Of a sandbox in which nothing has run yet: /etc/hosts and /etc/hostname for another host name;
 * and all that was made of now. 0 or -errno.
 */
int prepare_names(const struct cell_spec *s);
int prepare_times(const struct cell_spec *s);

/*
 * The uppers of the next generation, in `next`: empty, with the attributes of what they lie
 * over; none for mounts that stay the same. What an earlier attempt has left is removed.
 */
int prepare_next(const struct cell_spec *s, const struct cell_change *what, unsigned generation,
		 bool quota, struct err *e);
