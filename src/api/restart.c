/* SPDX-License-Identifier: Apache-2.0 */
#include "api/restart.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { CHECK_MS = 10000, ARGS_MOST = 128 };

static void kill_check(struct restart *r)
{
	(void)syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0);
}

static void on_patience(struct loop_timer *t)
{
	kill_check(container_of(t, struct restart, patience));
}

static int reap_check(struct restart *r)
{
	int status = -1;

	loop_del(r->loop, &r->io);
	loop_timer_stop(r->loop, &r->patience);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	fd_close(&r->pidfd);
	r->pid = 0;
	return status;
}

static void on_check_ended(struct loop_io *io, uint32_t events)
{
	struct restart *r = container_of(io, struct restart, io);
	int status = reap_check(r);

	(void)events;
	r->checked(r, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int spawn_check(const char *program, char *const *argv, pid_t *ret)
{
	char *args[ARGS_MOST + 2];
	posix_spawnattr_t at;
	sigset_t none;
	size_t n = 0;
	int r;

	while (n < ARGS_MOST && argv[n]) {
		args[n] = argv[n];
		n++;
	}
	args[n++] = "--check";
	args[n] = NULL;
	r = posix_spawnattr_init(&at);
	if (r != 0)
		return -r;
	(void)sigemptyset(&none);
	(void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigmask(&at, &none);
	r = posix_spawn(ret, program, NULL, &at, args, environ);
	(void)posix_spawnattr_destroy(&at);
	return -r;
}

int restart_check(struct restart *r, const char *program, char *const *argv)
{
	int err;

	if (r->pid)
		return -EALREADY;
	err = spawn_check(program, argv, &r->pid);
	if (err < 0) {
		r->pid = 0;
		return err;
	}
	r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	err = r->pidfd < 0 ? -errno : loop_add(r->loop, &r->io, r->pidfd, EPOLLIN, on_check_ended);
	if (err < 0) {
		(void)kill(r->pid, SIGKILL); /* our child, not reaped yet */
		(void)reap_check(r);
		return err;
	}
	loop_timer_set(r->loop, &r->patience, CHECK_MS * NS_PER_MS, on_patience);
	return 0;
}

void restart_done(struct restart *r)
{
	if (!r->pid)
		return;
	kill_check(r);
	(void)reap_check(r);
}
