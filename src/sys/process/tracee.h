/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop one task at the end of one exec, by ptrace. Its supervisor then sees what the kernel will
 * run before the program runs.
 *
 * tracee_hold() attaches while the task waits for the seccomp listener, in a sleep that only its
 * death ends (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), and requests a stop. After the listener's
 * answer the task stops exactly once: at PTRACE_EVENT_EXEC if the exec succeeded, or before
 * returning from the system call if it failed. A killed task does not stop. SIGCHLD announces all
 * three cases, and tracee_poll() distinguishes them.
 *
 * The hold lasts for one exec only, so a debugger inside can attach at any other time.
 */
#pragma once

#include <stdint.h>

enum tracee_state {
	TRACEE_RUNS,	 /* not yet stopped or dead */
	TRACEE_EXECED,	 /* stopped; the new program has not run yet */
	TRACEE_RETURNED, /* the exec failed; the task was released and runs */
	TRACEE_GONE,	 /* dead, or no longer held */
};

/*
 * Attach to thread tid. 0 or -errno: -EPERM if another debugger has it, -EAGAIN if the kernel did
 * not answer in time. Blocks for at most TRACEE_HOLD_MS.
 */
enum { TRACEE_HOLD_MS = 20 };
int tracee_hold(int tid);
/* tid: the held thread. pid: its process; after an exec the thread has that number. */
enum tracee_state tracee_poll(int tid, int pid);
/* The stack pointer of a stopped task; argc is there. -ENOEXEC: not of the native ABI. */
int tracee_stack(int pid, uint64_t *ret_sp);
/* Let a stopped task continue. -ESRCH if it was killed: poll until it is gone. */
int tracee_release(int pid);
/* Wait until a killed held task is dead, and reap it. Its pid namespace ends only then. */
void tracee_reap(int tid, int pid);
/* A descriptor that becomes readable at SIGCHLD, or -errno. Blocks SIGCHLD. */
int tracee_signal_fd(void);
/* Reset the descriptor until the next SIGCHLD. */
void tracee_signal_clear(int fd);
