/* SPDX-License-Identifier: Apache-2.0 */
#include "api/front_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/ns/jail.h"

/* waitid(2) by pidfd, from Linux 5.4. */
enum { WAIT_PIDFD = 3, STOP_MS = 15000, ROOT = 0 };

static void kill_front(const struct front_process *f)
{
	if (f->pid)
		(void)syscall(SYS_pidfd_send_signal, f->pidfd, SIGKILL, NULL, 0);
}

static void reap_front(struct front_process *f)
{
	siginfo_t info;

	loop_del(f->loop, &f->io);
	while (waitid((idtype_t)WAIT_PIDFD, (id_t)f->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	fd_close(&f->pidfd);
	loop_timer_stop(f->loop, &f->kill);
	conn_done(&f->control);
	f->pid = 0;
}

static void free_if_gone(struct front_process *f)
{
	if (f->pid || job_spawner_count(&f->workers) > 0)
		return;
	f->ops->gone(f);
	free(f);
}

/* Its workers end by themselves after their job. */
static void on_front_exit(struct loop_io *io, uint32_t events)
{
	struct front_process *f = container_of(io, struct front_process, io);

	(void)events;
	reap_front(f);
	f->ops->ended(f);
	free_if_gone(f);
}

/* ---- workers ---- */

static void on_worker_started(void *ctx, int slot, int sock, int cancel_fd)
{
	struct front_process *f = ctx;
	const int fds[] = { sock, cancel_fd };
	size_t at = 0;

	if (conn_begin(&f->control, F_WORKER, 0, &at) < 0 ||
	    field_put_u64(&f->control.out, CONTROL_SLOT, (uint64_t)slot) < 0) {
		(void)close(sock); /* it ends by itself */
		(void)close(cancel_fd);
		return;
	}
	(void)conn_end(&f->control, at, fds, 2);
}

static void on_worker_gone(void *ctx, int slot)
{
	struct front_process *f = ctx;

	(void)CONN_SAY(&f->control, F_GONE, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
	free_if_gone(f);
}

/* ---- frames ---- */

static int slot_of(const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t slot;

	if (field_next(&body, &field) != 1 || field.tag != CONTROL_SLOT ||
	    field_u64(field, &slot) < 0 || slot >= JOB_WORKERS)
		return -1;
	return (int)slot;
}

static void on_frame(struct conn *c, const struct frame *frame, int *fds)
{
	struct front_process *f = container_of(c, struct front_process, control);
	int slot = slot_of(frame);

	for (int i = 0; i < frame->nfds; i++)
		(void)close(fds[i]);
	if (frame->type == F_START && slot >= 0) {
		job_spawner_start(&f->workers, slot);
	} else if (frame->type == F_KILL && slot >= 0) {
		job_spawner_kill(&f->workers, slot);
	} else if (frame->type == F_LOG) {
		f->ops->log(f, frame->body);
	} else if (frame->type == F_READY && !f->ready) {
		f->ready = true;
		f->ops->ready(f);
	}
}

/* It has left or broken the protocol: its end follows. */
static void on_closed(struct conn *c, int err)
{
	struct front_process *f = container_of(c, struct front_process, control);

	(void)err;
	conn_done(c);
	kill_front(f);
}

/* ---- life ---- */

static int start_in_jail(struct front_process *f, const struct front_process_config *config,
			 int *ret_sock)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool root = geteuid() == ROOT;
	struct jail j = { .program = config->program,
			  .name = "cay",
			  .role = config->role,
			  .peer_fd = null,
			  .no_network = true,
			  .uid = root ? JAIL_UID : geteuid(),
			  .gid = root ? JAIL_UID : getegid() };
	int pair[2], r;

	if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	j.stream_fd = pair[1];
	r = jail_start(&j, &f->pid, &f->pidfd);
	(void)close(pair[1]);
	if (r < 0)
		(void)close(pair[0]);
	else
		*ret_sock = pair[0];
	return r;
}

static struct front_process *alloc_front(struct loop *l, const struct front_process_config *config,
					 const struct front_process_ops *ops, void *user)
{
	struct front_process *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->loop = l;
	f->ops = ops;
	f->user = user;
	f->pidfd = FD_NONE;
	f->io.fd = FD_NONE;
	f->control.fd = FD_NONE;
	f->workers = (struct job_spawner){ .loop = l,
					   .program = config->program,
					   .argv = config->worker_argv,
					   .envp = config->worker_envp,
					   .started = on_worker_started,
					   .gone = on_worker_gone,
					   .ctx = f };
	job_spawner_init(&f->workers);
	return f;
}

static int watch_front(struct front_process *f, int sock)
{
	static const struct conn_ops control_ops = { .frame = on_frame, .closed = on_closed };
	int r = loop_add(f->loop, &f->io, f->pidfd, EPOLLIN, on_front_exit);

	if (r < 0) {
		(void)close(sock); /* which ends it */
		return r;
	}
	return conn_init(&f->control, f->loop, sock, &control_ops);
}

int front_process_new(struct front_process **ret, struct loop *l,
		      const struct front_process_config *config,
		      const struct front_process_ops *ops, void *user)
{
	struct front_process *f = alloc_front(l, config, ops, user);
	int sock, r = f ? start_in_jail(f, config, &sock) : -ENOMEM;

	if (r < 0) {
		free(f);
		return r;
	}
	r = watch_front(f, sock);
	if (r < 0) {
		front_process_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

int front_process_adopt(struct front_process **ret, struct loop *l,
			const struct front_process_config *config,
			const struct front_process_ops *ops, void *user, pid_t pid, int control)
{
	struct front_process *f = alloc_front(l, config, ops, user);
	int r = f ? 0 : -ENOMEM;

	if (r == 0) {
		f->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		r = f->pidfd < 0 ? -errno : 0;
	}
	if (r < 0) {
		(void)close(control); /* which ends it */
		free(f);
		return r;
	}
	f->pid = pid;
	f->ready = f->old = true;
	r = watch_front(f, control);
	if (r < 0) {
		front_process_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void on_stop_due(struct loop_timer *t)
{
	kill_front(container_of(t, struct front_process, kill));
}

void front_process_stop(struct front_process *f)
{
	if (!f->pid)
		return;
	(void)conn_send(&f->control, F_STOP, 0, STR_NONE);
	loop_timer_set(f->loop, &f->kill, STOP_MS * NS_PER_MS, on_stop_due);
}

void front_process_free(struct front_process *f)
{
	kill_front(f);
	if (f->pid)
		reap_front(f);
	job_spawner_done(&f->workers);
	free(f);
}
