/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/warden_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ops/background.h"
#include "wire/proto.h"

/* The descriptor numbers that a new warden starts with. */
enum { WARDEN_SOCKET = 3, WARDEN_LOCK, WARDEN_SLOT };

/* Start parameters of a new warden. */
struct child {
	const char *path;
	char **envp; /* environment for `cay reconcile`, if this process is gone */
	int from[3]; /* socket, lock and slot */
	int failed;  /* errno */
};

/* Runs in our memory while we are suspended (vfork): touches only its own descriptors. */
static int become_warden(void *arg)
{
	char *argv[] = { "cay-warden", NULL };
	struct child *b = arg;

	for (int i = 0; i < (int)ARRAY_LEN(b->from); i++)
		if (dup2(b->from[i], WARDEN_SOCKET + i) < 0) {
			b->failed = errno;
			return 1;
		}
	(void)execve(b->path, argv, b->envp);
	b->failed = errno;
	return 1;
}

/*
 * Like posix_spawn(3), without its 130 system calls for signals. The warden resets its inherited
 * signal state itself; until then all signals are blocked.
 */
static pid_t start_child(struct child *b)
{
	static char stack[16384]
		__attribute__((aligned(16))); /* static is safe: this process has one thread */
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(become_warden, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, b);
	if (pid < 0)
		b->failed = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid > 0 && b->failed)
		(void)waitpid(pid, NULL, 0);
	return b->failed ? -b->failed : pid;
}

/* dup2 onto the same number would leave CLOEXEC set: keep the sources above the targets. */
static int above(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, WARDEN_SLOT + 1);

	return moved < 0 ? -errno : moved;
}

static int spawn(const char *path, int sock, const struct creation *n, char **envp, pid_t *ret_pid,
		 struct err *e)
{
	auto_close int sock2 = above(sock), lock2 = above(n->lock_fd);
	auto_close int slot2 = above(n->slot_fd >= 0 ? n->slot_fd : n->lock_fd);
	struct child b = { path, envp, { sock2, lock2, slot2 }, 0 };
	pid_t pid;

	if (sock2 < 0 || lock2 < 0 || slot2 < 0)
		return err_sys(e,
			       sock2 < 0   ? -sock2
			       : lock2 < 0 ? -lock2
					   : -slot2,
			       "start the warden");
	pid = start_child(&b);
	if (pid < 0)
		return err_sys(e, -pid, "start '%s'", path);
	*ret_pid = pid;
	return 0;
}

int warden_start(struct creation *n, struct err *e)
{
	const struct cay *c = n->cay;
	char state[sizeof c->state.dir + 16], id[sizeof n->row.id + 16];
	char program[sizeof c->programs.cay + 16];
	char *envp[RECORD_ENV + 4] = { state, id, program };
	struct record_env env;
	int pair[2], r;

	(void)snprintf(state, sizeof state, "CAY_STATE=%s", c->state.dir);
	(void)snprintf(id, sizeof id, WARDEN_ENV_ID "=%s", n->row.id);
	(void)snprintf(program, sizeof program, WARDEN_ENV_PROGRAM "=%s", c->programs.cay);
	record_env(&c->config, &env, envp + 3);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, errno, "make a socket pair");
	r = spawn(c->programs.warden, pair[1], n, envp, &n->warden_pid, e);
	(void)close(pair[1]);
	n->warden_fd = pair[0];
	return r;
}
