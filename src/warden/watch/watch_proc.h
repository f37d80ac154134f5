/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a process is and how it ended, by pidfd. Each question has a cheap answer on a new
 * kernel and a dearer one from /proc on Linux 6.1.
 */
#pragma once

#include <stdbool.h>

/* The sandbox's pid namespace, learned from the first process seen in it. */
struct proc_view {
	int pidns_fd; /* FD_NONE where the kernel cannot translate by it (before 6.11) */
	int depth;    /* of the namespace below ours; 0: not learned yet */
};

#define PROC_VIEW_INIT \
	{ \
		.pidns_fd = -1 \
	}

void proc_view_done(struct proc_view *v);
/* pidfd: of a process that is directly in the sandbox's namespace, as init's children are. */
void proc_view_learn(struct proc_view *v, int pidfd);

/* The pidfd of the process that thread tid belongs to, and its pid; or -errno. */
int proc_open(int tid, int *ret_pid);
bool proc_is_gone(int pidfd);
/* The pid in the sandbox's namespace, or 0 where it has none or is gone. */
int proc_inside(const struct proc_view *v, int pid);
/* The parent's pid outside, or 0. pidfd may be FD_NONE. */
int proc_parent(int pidfd, int pid);
/* True and its wait status where it has been reaped, and the kernel remembers (Linux 6.15). */
bool proc_was_reaped(int pidfd, int *ret_status);
/* The wait status of a process that has ended; -ENODATA where nobody can tell any more. */
int proc_status(int pidfd, int pid, int *ret_status);

/* State, parent and, of a zombie, wait status from /proc/PID/stat. */
int proc_stat(int pid, char *ret_state, int *ret_ppid, int *ret_status);
