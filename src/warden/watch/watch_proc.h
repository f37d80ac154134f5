/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity and exit status of a process, by pidfd. Each function uses a cheap call of a new kernel,
 * or /proc on Linux 6.1.
 */
#pragma once

#include <stdbool.h>

/* The sandbox's pid namespace, learned from the first process seen in it. */
struct proc_view {
	int pidns_fd; /* FD_NONE if the kernel cannot translate pids with it (before 6.11) */
	int depth;    /* of the namespace below ours; 0: not known yet */
};

#define PROC_VIEW_INIT \
	{ \
		.pidns_fd = -1 \
	}

void proc_view_done(struct proc_view *v);
/* pidfd: of a process directly in the sandbox's namespace, such as a child of init. */
void proc_view_learn(struct proc_view *v, int pidfd);

/* Open a pidfd of the process that thread tid belongs to; or -errno. */
int proc_open(int tid, int *ret_pid);
bool proc_is_gone(int pidfd);
/* The pid in the sandbox's namespace; 0: it has none, or is gone. */
int proc_inside(const struct proc_view *v, int pid);
/* The parent's pid outside, or 0. pidfd may be FD_NONE. */
int proc_parent(int pidfd, int pid);
/* True, with the wait status, if it was reaped and the kernel remembers it (Linux 6.15). */
bool proc_was_reaped(int pidfd, int *ret_status);
/* The wait status of a process that has ended; -ENODATA if it is lost. */
int proc_status(int pidfd, int pid, int *ret_status);

/* State, parent and, for a zombie, wait status from /proc/PID/stat. */
int proc_stat(int pid, char *ret_state, int *ret_ppid, int *ret_status);
