/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sys/filter/seccomp_command.h"
#include "t.h"

static struct listener_bufs bufs;

/* Starts a task that waits in its exec; *ret_listener is its listener. */
static pid_t begin_exec(int *ret_listener)
{
	struct pollfd p = { .events = POLLIN };
	pid_t pid;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && listener_bufs_init(&bufs) == 0);
	p.fd = seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false);
	CHECK(p.fd >= 0);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(poll(&p, 1, 10000) == 1);
	*ret_listener = p.fd;
	return pid;
}

static void end_exec(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	listener_bufs_done(&bufs);
}

/* Without a time limit this test never ends. */
static void a_call_that_another_holder_took_does_not_block_us(void)
{
	struct listener_bufs theirs = { 0 };
	int fd;
	pid_t pid = begin_exec(&fd);

	CHECK(listener_bufs_init(&theirs) == 0 && listener_receive(fd, &theirs) == 0);
	CHECK(listener_receive(fd, &bufs) == -EINTR);
	listener_bufs_done(&theirs);
	end_exec(pid);
}

static void a_call_that_waits_is_received(void)
{
	int fd;
	pid_t pid = begin_exec(&fd);

	CHECK(listener_receive(fd, &bufs) == 0 && (pid_t)bufs.notif->pid == pid);
	CHECK(listener_is_valid(fd, bufs.notif->id));
	end_exec(pid);
}

T_MAIN(T(a_call_that_another_holder_took_does_not_block_us), T(a_call_that_waits_is_received))
