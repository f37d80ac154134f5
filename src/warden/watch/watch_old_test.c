/* SPDX-License-Identifier: Apache-2.0 */
/* The watch on a kernel that does not remember reaped processes: only init knows the status. */
#include "warden/watch/watch.h"

#include <signal.h>
#include <sys/syscall.h>

#include "warden/watch/watch_fake.h"
#include "warden/watch/watch_proc.h"

static int open_error;	/* returned by proc_open() instead of a pidfd */
static bool kill_early; /* kill the task between the notification and the answer */

void proc_view_done(struct proc_view *v)
{
	(void)v;
}

void proc_view_learn(struct proc_view *v, int pidfd)
{
	(void)v;
	(void)pidfd;
}

int proc_open(int tid, int *ret_pid)
{
	siginfo_t si;

	*ret_pid = tid;
	if (kill_early)
		CHECK(kill(tid, SIGKILL) == 0 &&
		      waitid(P_PID, (id_t)tid, &si, WEXITED | WNOWAIT) == 0);
	return open_error ? open_error : (int)syscall(SYS_pidfd_open, tid, 0);
}

bool proc_is_gone(int pidfd)
{
	(void)pidfd;
	return false;
}

int proc_inside(const struct proc_view *v, int pid)
{
	(void)v;
	return pid;
}

int proc_parent(int pidfd, int pid)
{
	(void)pidfd;
	return pid == getpid() ? 0 : getpid();
}

bool proc_was_reaped(int pidfd, int *ret_status)
{
	(void)pidfd;
	(void)ret_status;
	return false;
}

int proc_status(int pidfd, int pid, int *ret_status)
{
	(void)pidfd;
	(void)pid;
	(void)ret_status;
	return -ENODATA;
}

static void exec_true(void *arg)
{
	(void)arg;
	execl("/bin/true", "true", NULL);
}

static struct fake_call f;
static int root = FD_NONE;

static void begin(void)
{
	root = open("/", O_PATH | O_CLOEXEC);
	fake_begin(&f, root, exec_true, NULL);
}

static void turn(void)
{
	struct epoll_event ev;

	CHECK(epoll_wait(f.loop.epfd, &ev, 1, 5000) == 1);
	((struct loop_io *)ev.data.ptr)->fn(ev.data.ptr, ev.events);
}

static void end(void)
{
	int st;

	CHECK(f.idle == 1 && waitpid(f.pid, &st, 0) == f.pid);
	fake_end(&f);
	close(root);
}

static void a_status_told_before_the_end_is_kept(void)
{
	begin();
	while (fake_len == 0)
		turn();
	watch_reaped(f.watch, f.pid + 1, 1 << 8);
	watch_reaped(f.watch, f.pid, 9 << 8);
	CHECK(fake_len == 1);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(fake_len == 2 && fake_events[1].code == 9);
	end();
}

static void a_status_told_after_the_end_is_waited_for(void)
{
	begin();
	while (f.loop.timers == NULL)
		turn();
	CHECK(fake_len == 1 && watch_call_of(f.watch, f.pid) == 0);
	watch_reaped(f.watch, f.pid, 15);
	CHECK(fake_len == 2 && fake_events[1].signal == 15 && fake_events[1].parent == 1000);
	if (f.idle == 0)
		CHECK(loop_run(&f.loop) == 0);
	end();
}

static void a_status_that_nobody_tells_is_unknown(void)
{
	begin();
	CHECK(loop_run(&f.loop) == 0);
	CHECK(fake_len == 2 && fake_events[1].unknown && fake_events[1].code == -1);
	end();
}

static void giving_up_forgets_who_is_waited_for(void)
{
	int st;

	begin();
	while (f.loop.timers == NULL)
		turn();
	watch_call_free(f.call);
	watch_reaped(f.watch, f.pid, 0);
	CHECK(fake_len == 1 && f.idle == 0);
	f.call = NULL;
	fake_end(&f);
	CHECK(waitpid(f.pid, &st, 0) == f.pid);
	close(root);
}

static void an_exit_that_cannot_be_awaited_is_a_gap(void)
{
	open_error = -EMFILE;
	begin();
	CHECK(loop_run(&f.loop) == 0);
	CHECK(fake_len == 2);
	CHECK_STR(fake_events[0].kind, "process.exec");
	CHECK_STR(fake_events[1].kind, "trace.gap");
	CHECK_STR(fake_events[1].lost, "process.exit");
	CHECK(fake_events[1].count == 1 && fake_events[1].call == 7);
	end();
}

static void a_process_killed_before_the_answer_makes_no_event(void)
{
	kill_early = true;
	begin();
	CHECK(loop_run(&f.loop) == 0);
	CHECK(fake_len == 0);
	end();
}

T_MAIN(T(a_status_told_before_the_end_is_kept), T(a_status_told_after_the_end_is_waited_for),
       T(a_status_that_nobody_tells_is_unknown), T(giving_up_forgets_who_is_waited_for),
       T(an_exit_that_cannot_be_awaited_is_a_gap),
       T(a_process_killed_before_the_answer_makes_no_event))
