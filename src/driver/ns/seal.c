/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn the files of a generation that init left into a layer, which others may use. Init could have
 * kept a descriptor or its mount namespace. So the overlays themselves become read-only. Only the
 * mounter can undo that: root, or if rootless U1, which the caller enters for it.
 */
#include <errno.h>
#include <sched.h>

#include "base/cleanup.h"
#include "driver/ns/ns.h"
#include "sys/ns/mnt.h"

static int seal_all(const struct generation *left, const bool *which)
{
	int r = 0;

	for (int i = 0; i < CELL_MOUNTS && r == 0; i++)
		if (which[i] && left->mount_fd[i] >= 0)
			r = mnt_seal(left->mount_fd[i]);
	return r;
}

int ns_seal(struct cell *c, const struct generation *left, const bool *which, struct err *e)
{
	struct cell_keep *k = &ns_cell(c)->keep;
	int r = 0;

	/* Only once; a second try continues from there. */
	if (k->outer_ns >= 0 &&
	    (setns(k->outer_ns, CLONE_NEWUSER) < 0 || setns(k->mount_ns, CLONE_NEWNS) < 0))
		r = -errno;
	fd_close(&k->outer_ns);
	if (r == 0)
		r = seal_all(left, which);
	if (r == -EBUSY)
		return 1;
	return r < 0 ? err_sys(e, -r, "make the last generation read-only") : 0;
}
