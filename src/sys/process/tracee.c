/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTRACE_SEIZE takes a mutex of the task's process (cred_guard_mutex). Another thread of that
 * process can hold the mutex for as long as a debugger inside chooses: during an exec that waits
 * for a dead thread which the debugger does not reap. The kernel restarts the wait for the mutex
 * after every signal, so a timer's handler jumps out of it (patience.h).
 */
#include "sys/process/tracee.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process/patience.h"

static int seize(int tid)
{
	static sigjmp_buf too_late;
	int r;

	if (sigsetjmp(too_late, 0)) {
		patience_end();
		return -EAGAIN;
	}
	r = patience_begin(TRACEE_HOLD_MS, &too_late);
	if (r < 0)
		return r;
	r = ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC) < 0 ? -errno : 0;
	patience_end();
	return r;
}

int tracee_hold(int tid)
{
	int r = seize(tid);

	/* The alarm may come just after PTRACE_SEIZE succeeded: then this call succeeds too. */
	if (r < 0 && r != -EAGAIN)
		return r;
	return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : 0;
}

static enum tracee_state poll_one(int id)
{
	siginfo_t si = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)id, &si, WEXITED | WSTOPPED | WNOHANG | __WALL) < 0)
		return TRACEE_GONE;
	if (si.si_pid == 0)
		return TRACEE_RUNS;
	if (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED)
		return TRACEE_GONE;
	if (si.si_status >> 8 == PTRACE_EVENT_EXEC)
		return TRACEE_EXECED;
	/* An event stop has already handled its signal; otherwise deliver the signal. */
	if (ptrace(PTRACE_DETACH, id, NULL,
		   (void *)(uintptr_t)(si.si_status >> 8 ? 0 : si.si_status)) < 0)
		return TRACEE_RUNS; /* killed meanwhile; wait for its end */
	return TRACEE_RETURNED;
}

enum tracee_state tracee_poll(int tid, int pid)
{
	enum tracee_state s = poll_one(tid);

	/* An exec gives the thread its process's number. */
	return s == TRACEE_GONE && tid != pid ? poll_one(pid) : s;
}

int tracee_stack(int pid, uint64_t *ret_sp)
{
	struct user_regs_struct regs;
	struct iovec v = { &regs, sizeof regs };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &v) < 0)
		return -errno;
	if (v.iov_len != sizeof regs)
		return -ENOEXEC;
#ifdef __x86_64__
	*ret_sp = regs.rsp;
#else
	*ret_sp = regs.sp;
#endif
	return 0;
}

int tracee_release(int pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? -errno : 0;
}

static void reap_one(int id)
{
	siginfo_t si;

	while (waitid(P_PID, (id_t)id, &si, WEXITED | WSTOPPED | __WALL) == 0 &&
	       (si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED))
		(void)ptrace(PTRACE_DETACH, id, NULL, NULL);
}

void tracee_reap(int tid, int pid)
{
	reap_one(tid);
	if (pid != tid)
		reap_one(pid);
}

int tracee_signal_fd(void)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void tracee_signal_clear(int fd)
{
	struct signalfd_siginfo si;

	/* Several signals leave only one pending. */
	(void)!read(fd, &si, sizeof si);
}
