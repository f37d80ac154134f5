/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_race_test.c tests the normal case; this file tests what a debugger inside can do against
 * it.
 */
#include "sys/process/tracee.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "t.h"

static volatile int *thread; /* thread id, shared with the process below; 0: not yet */
static volatile int *go;

static void *sleep_on(void *arg)
{
	*thread = (int)syscall(SYS_gettid);
	for (int r = 0; r <= 0;)
		r = pause();
	return arg;
}

static void *exec_when_told(void *arg)
{
	while (!*go)
		(void)poll(NULL, 0, 1);
	(void)execl("/bin/true", "true", NULL);
	return arg;
}

static pid_t start_threads(void)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pthread_create(&t, NULL, sleep_on, NULL);
		(void)pthread_create(&t, NULL, exec_when_told, NULL);
		for (;;)
			(void)pause();
	}
	return pid;
}

/* A debugger that attaches to the thread and never reaps it. */
static pid_t start_debugger(int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_SEIZE, *thread, NULL, NULL) < 0 || write(ready, "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	return pid;
}

static char state_of(int pid, int tid)
{
	char path[64], text[256] = "", *at;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (f) {
		(void)!fread(text, 1, sizeof text - 1, f);
		(void)fclose(f);
	}
	at = strrchr(text, ')');
	return at && at[1] ? at[2] : '-';
}

static void a_delayed_hold_times_out(void)
{
	int ready[2], st;
	pid_t pid, debugger;
	uint64_t began;
	char byte;

	thread = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(thread != MAP_FAILED && pipe(ready) == 0);
	go = thread + 1;
	pid = start_threads();
	while (!*thread)
		(void)poll(NULL, 0, 1);
	debugger = start_debugger(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	/* The exec kills the other threads and waits until the debugger has reaped its own. */
	*go = 1;
	while (state_of(pid, *thread) != 'Z' || state_of(pid, pid) != 'Z')
		(void)poll(NULL, 0, 1);
	began = clock_mono_ns();
	CHECK(tracee_hold(pid) < 0);
	CHECK(clock_mono_ns() - began < 20000 * NS_PER_MS);
	CHECK(kill(debugger, SIGKILL) == 0 && waitpid(debugger, &st, 0) == debugger);
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

static void a_hold_of_a_missing_task_fails_at_once(void)
{
	CHECK(tracee_hold(getpid()) == -EPERM);
	CHECK(tracee_hold(0x7ffffff0) == -ESRCH);
	CHECK(tracee_poll(0x7ffffff0, 0x7ffffff0) == TRACEE_GONE);
}

static void a_traced_task_cannot_be_held(void)
{
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			(void)raise(SIGSTOP);
		_exit(1);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFSTOPPED(st));
	CHECK(tracee_hold(pid) < 0); /* -EPERM, or what came after the time was over */
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &st, 0) == pid);
}

T_MAIN(T(a_delayed_hold_times_out), T(a_hold_of_a_missing_task_fails_at_once),
       T(a_traced_task_cannot_be_held))
