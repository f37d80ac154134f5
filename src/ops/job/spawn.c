/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/job/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* waitid(2) by pidfd, from Linux 5.4. */
enum { WAIT_PIDFD = 3 };

void job_spawner_init(struct job_spawner *s)
{
	for (int i = 0; i < JOB_WORKERS; i++)
		s->processes[i] =
			(struct job_process){ .spawner = s, .pidfd = FD_NONE, .io.fd = FD_NONE };
}

static void reap(struct job_process *p)
{
	siginfo_t info;

	loop_del(p->spawner->loop, &p->io);
	while (waitid((idtype_t)WAIT_PIDFD, (id_t)p->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	fd_close(&p->pidfd);
	p->pid = 0;
}

static void on_exit_of(struct loop_io *io, uint32_t events)
{
	struct job_process *p = container_of(io, struct job_process, io);
	struct job_spawner *s = p->spawner;

	(void)events;
	reap(p);
	s->gone(s->ctx, (int)(p - s->processes));
}

/* dup2 onto the same number would leave close-on-exec set: keep the sources above the targets. */
static int add_fds(posix_spawn_file_actions_t *fa, int *sock, int *cancel)
{
	int from[] = { fcntl(*sock, F_DUPFD_CLOEXEC, WORKER_CANCEL + 1),
		       fcntl(*cancel, F_DUPFD_CLOEXEC, WORKER_CANCEL + 1) };

	fd_close(sock);
	*sock = from[0];
	if (from[0] < 0 || from[1] < 0) {
		fd_close(&from[1]);
		return -EMFILE;
	}
	(void)close(*cancel);
	*cancel = from[1];
	if (posix_spawn_file_actions_addopen(fa, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_adddup2(fa, *sock, WORKER_SOCKET) != 0 ||
	    posix_spawn_file_actions_adddup2(fa, *cancel, WORKER_CANCEL) != 0)
		return -ENOMEM;
	return 0;
}

static int spawn_with(const struct job_spawner *s, const posix_spawn_file_actions_t *fa,
		      pid_t *ret_pid)
{
	posix_spawnattr_t at;
	sigset_t none, all;
	int r = posix_spawnattr_init(&at);

	if (r != 0)
		return -r;
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&at, &none);
	(void)posix_spawnattr_setsigdefault(&at, &all);
	r = posix_spawn(ret_pid, s->program, fa, &at, s->argv, s->envp);
	(void)posix_spawnattr_destroy(&at);
	return -r;
}

/* Closes `sock`, the worker's end. The caller keeps *cancel. */
static int spawn_worker(const struct job_spawner *s, int sock, int *cancel, pid_t *ret_pid)
{
	posix_spawn_file_actions_t fa;
	int r = posix_spawn_file_actions_init(&fa);

	if (r != 0) {
		(void)close(sock);
		return -r;
	}
	r = add_fds(&fa, &sock, cancel);
	if (r == 0)
		r = spawn_with(s, &fa, ret_pid);
	(void)posix_spawn_file_actions_destroy(&fa);
	fd_close(&sock);
	return r;
}

static int watch(struct job_process *p, pid_t pid)
{
	int r;

	p->pid = pid;
	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	r = p->pidfd < 0 ? -errno
			 : loop_add(p->spawner->loop, &p->io, p->pidfd, EPOLLIN, on_exit_of);
	if (r < 0) {
		(void)kill(
			pid,
			SIGKILL); /* our child, not reaped yet: the pid cannot have been reused */
		(void)waitpid(pid, NULL, 0);
		fd_close(&p->pidfd);
		p->pid = 0;
	}
	return r;
}

void job_spawner_start(struct job_spawner *s, int slot)
{
	struct job_process *p = &s->processes[slot];
	int pair[2] = { FD_NONE, FD_NONE };
	auto_close int cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_close int sock = FD_NONE;
	pid_t pid = 0;

	if (p->pid || cancel < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		s->gone(s->ctx, slot);
		return;
	}
	sock = pair[0];
	if (spawn_worker(s, pair[1], &cancel, &pid) < 0 || watch(p, pid) < 0)
		s->gone(s->ctx, slot);
	else
		s->started(s->ctx, slot, TAKE_FD(sock), TAKE_FD(cancel));
}

int job_spawner_adopt(struct job_spawner *s, int slot, pid_t pid)
{
	return watch(&s->processes[slot], pid);
}

static void kill_process(const struct job_process *p)
{
	if (p->pid)
		(void)syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
}

void job_spawner_kill(struct job_spawner *s, int slot)
{
	kill_process(&s->processes[slot]);
}

int job_spawner_count(const struct job_spawner *s)
{
	int n = 0;

	for (int i = 0; i < JOB_WORKERS; i++)
		n += s->processes[i].pid != 0;
	return n;
}

void job_spawner_done(struct job_spawner *s)
{
	for (int i = 0; i < JOB_WORKERS; i++)
		kill_process(&s->processes[i]);
	for (int i = 0; i < JOB_WORKERS; i++)
		if (s->processes[i].pid)
			reap(&s->processes[i]);
}

static void host_start(void *ctx, int slot)
{
	job_spawner_start(ctx, slot);
}

static void host_kill(void *ctx, int slot)
{
	job_spawner_kill(ctx, slot);
}

struct job_host job_spawner_host(struct job_spawner *s)
{
	return (struct job_host){ .start = host_start, .kill = host_kill, .ctx = s };
}

static void queue_started(void *ctx, int slot, int sock, int cancel_fd)
{
	job_queue_started(ctx, slot, sock, cancel_fd);
}

static void queue_gone(void *ctx, int slot)
{
	job_queue_gone(ctx, slot);
}

void job_spawner_serve(struct job_spawner *s, struct job_queue *q)
{
	s->started = queue_started;
	s->gone = queue_gone;
	s->ctx = q;
}
