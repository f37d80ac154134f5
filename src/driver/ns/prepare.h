/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver/driver.h"

/*
 * Make the upper and work directories of a new sandbox and its own files in them: mount points,
 * host name, hosts, machine id. No sandbox has written to that directory yet, so plain names are
 * safe.
 *
 * Ids on disk are those inside, whatever the sandbox's range, so that sandboxes can share layers. A
 * setuid file of root inside is therefore setuid root outside, and the directory must be closed to
 * all other users.
 *
 * In storage, a generation is one subvolume with the uppers and `work`; quota: with the disk limit.
 */
int prepare_uppers(const struct cell_spec *s, bool quota, struct err *e);

/*
 * For a sandbox in which nothing has run yet: write /etc/hosts and /etc/hostname for another host
 * name, and set all times to now. 0 or -errno.
 */
int prepare_names(const struct cell_spec *s);
int prepare_times(const struct cell_spec *s);

/*
 * Make the uppers of the next generation in `next`: empty, with the attributes of what is below
 * them; none for mounts that stay the same. Removes what an earlier attempt left.
 */
int prepare_next(const struct cell_spec *s, const struct cell_change *what, unsigned generation,
		 bool quota, struct err *e);
