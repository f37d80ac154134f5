/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a generation that was left become a layer, which others may have below them. Init
 * has left it, but could have kept a descriptor, or its mount namespace: so the overlays
 * themselves are made read-only, which only whoever mounted them can undo: root, or without root
 * U1, which the caller enters for it.
 */
#include <errno.h>
#include <sched.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "sys/mnt.h"

static int seal_all(const struct cell_next *left, const bool *which)
{
	int r = 0;

	for (int i = 0; i < CELL_MOUNTS && r == 0; i++)
		if (which[i] && left->mount_fd[i] >= 0)
			r = mnt_seal(left->mount_fd[i]);
	return r;
}

int seal(struct cell *c, const struct cell_next *left, const bool *which, struct err *e)
{
	struct cell_keep *k = &c->keep;
	int r = 0;

	/* Once; a second try is made from there. */
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
