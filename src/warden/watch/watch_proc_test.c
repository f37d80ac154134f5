/* SPDX-License-Identifier: Apache-2.0 */
/* Each function in both ways: by a new kernel's call, and from /proc. */
#include "warden/watch/watch_proc.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "t.h"

/* A child that lives until `hold` is closed, and then exits with 11. */
static pid_t child(unsigned long flags, int *ret_hold)
{
	int p[2];
	pid_t pid;

	CHECK(pipe(p) == 0);
	pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		char c;

		close(p[1]);
		(void)prctl(PR_SET_NAME, "x) Z 1 2 3");
		_exit(read(p[0], &c, 1) == 0 ? 11 : 12);
	}
	close(p[0]);
	*ret_hold = p[1];
	return pid;
}

static void parent_and_pid_are_the_same_either_way(void)
{
	struct proc_view v = PROC_VIEW_INIT, old = PROC_VIEW_INIT;
	int hold, same, fd;
	pid_t pid = child(0, &hold);

	fd = proc_open(pid, &same);
	CHECK(fd >= 0 && same == pid);
	CHECK(proc_parent(fd, pid) == getpid() && proc_parent(FD_NONE, pid) == getpid());
	proc_view_learn(&v, fd);
	old.depth = v.depth;
	CHECK(v.depth == 1);
	CHECK(proc_inside(&v, pid) == pid && proc_inside(&old, pid) == pid);
	CHECK(proc_inside(&v, 0) == 0 && proc_inside(&old, 1 << 30) == 0);
	close(hold);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(proc_inside(&v, pid) == 0 && proc_inside(&old, pid) == 0);
	proc_view_done(&v);
	close(fd);
}

static void in_a_namespace_both_ways_give_the_pid_inside(void)
{
	struct proc_view v = PROC_VIEW_INIT, old = PROC_VIEW_INIT;
	int hold, same, fd, st;
	pid_t pid = child(CLONE_NEWPID, &hold);

	if (pid < 0)
		return; /* not permitted to make namespaces */
	fd = proc_open(pid, &same);
	proc_view_learn(&v, fd);
	old.depth = v.depth;
	CHECK(v.depth == 2);
	CHECK(proc_inside(&v, pid) == 1 && proc_inside(&old, pid) == 1);
	CHECK(proc_inside(&v, getpid()) == 0 && proc_inside(&old, getpid()) == 0);
	close(hold);
	CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 11);
	proc_view_done(&v);
	close(fd);
}

static void the_status_is_there_before_and_after_the_reaping(void)
{
	int hold, same, status = -1, ppid;
	char state = 0;
	pid_t pid = child(0, &hold);
	int fd = proc_open(pid, &same);
	siginfo_t si;

	CHECK(proc_status(fd, pid, &status) < 0);
	close(hold);
	CHECK(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) == 0);
	CHECK(proc_status(fd, pid, &status) == 0 && WEXITSTATUS(status) == 11);
	CHECK(proc_stat(pid, &state, &ppid, &status) == 0 && state == 'Z');
	CHECK(ppid == getpid() && WEXITSTATUS(status) == 11);
	CHECK(!proc_is_gone(fd));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(proc_is_gone(fd));
	status = -1;
	if (proc_status(fd, pid, &status) == 0) /* Linux 6.15 */
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 11);
	close(fd);
}

static void *find_leader(void *arg)
{
	int *found = arg;
	int fd = proc_open((int)syscall(SYS_gettid), &found[0]);

	found[1] = fd >= 0;
	close(fd);
	return NULL;
}

static void a_thread_leads_to_its_process(void)
{
	int found[2] = { 0 };
	pthread_t t;

	CHECK(pthread_create(&t, NULL, find_leader, found) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(found[0] == getpid() && found[1]);
}

T_MAIN(T(parent_and_pid_are_the_same_either_way), T(in_a_namespace_both_ways_give_the_pid_inside),
       T(the_status_is_there_before_and_after_the_reaping), T(a_thread_leads_to_its_process))
