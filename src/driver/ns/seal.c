/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a generation that was left become a layer, which others may have below them. Init
 * has left it, but could have kept a descriptor, or its mount namespace: so the overlays
 * themselves are made read-only, which only whoever mounted them can undo. That is root, or
 * without root U1, whose part a child takes.
 */
#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

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

static int seal_as_outer(const struct cell_keep *k, const struct cell_next *left, const bool *which)
{
	pid_t pid = fork(), r;
	int status;

	if (pid == 0) {
		if (setns(k->outer_ns, CLONE_NEWUSER) < 0 || setns(k->mount_ns, CLONE_NEWNS) < 0)
			_exit(errno);
		_exit(-seal_all(left, which));
	}
	if (pid < 0)
		return -errno;
	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	return r == pid && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int seal(struct cell *c, const struct cell_next *left, const bool *which, struct err *e)
{
	const struct cell_keep *k = &c->keep;
	int r = k->outer_ns < 0 ? seal_all(left, which) : seal_as_outer(k, left, which);

	if (r == -EBUSY)
		return 1;
	return r < 0 ? err_sys(e, -r, "make the last generation read-only") : 0;
}
