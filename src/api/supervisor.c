/* SPDX-License-Identifier: Apache-2.0 */
#include "api/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/server_key.h"
#include "base/clock.h"
#include "loop/conn.h"
#include "ops/job/spawn.h"
#include "ops/key.h"
#include "sys/ns/jail.h"

/* waitid(2) by pidfd, from Linux 5.4. */
enum { WAIT_PIDFD = 3, REST_FIRST_MS = 50, REST_LAST_MS = 5000, STOP_MS = 15000, ROOT = 0 };

struct supervisor {
	const struct supervisor_config *config;
	struct loop loop;
	struct job_spawner spawner;
	uint8_t secret[SERVER_SECRET];
	struct conn front;
	pid_t front_pid; /* 0: none */
	int front_pidfd;
	struct loop_io front_io;
	struct loop_timer front_timer; /* start again, or kill */
	uint64_t rest_ms;
	int signal_fd, keys_fd;
	struct loop_io signal_io, keys_io;
	bool told_ready, stopping, failed;
};

static void front_start(struct supervisor *s);

static void on_front_due(struct loop_timer *t)
{
	front_start(container_of(t, struct supervisor, front_timer));
}

static void on_stop_due(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, front_timer);

	(void)syscall(SYS_pidfd_send_signal, s->front_pidfd, SIGKILL, NULL, 0);
}

/* The front has ended: another one, unless we stop. Workers end by themselves after their job. */
static void on_front_exit(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, front_io);
	uint64_t ms = s->rest_ms ? s->rest_ms : REST_FIRST_MS;
	siginfo_t info;

	(void)events;
	loop_del(&s->loop, io);
	(void)waitid((idtype_t)WAIT_PIDFD, (id_t)s->front_pidfd, &info, WEXITED);
	fd_close(&s->front_pidfd);
	conn_done(&s->front);
	s->front_pid = 0;
	if (s->stopping) {
		loop_stop(&s->loop);
		return;
	}
	s->rest_ms = ms * 2 < REST_LAST_MS ? ms * 2 : REST_LAST_MS;
	loop_timer_set(&s->loop, &s->front_timer, ms * NS_PER_MS, on_front_due);
}

static void on_worker_started(void *ctx, int slot, int sock, int cancel_fd)
{
	struct supervisor *s = ctx;
	const int fds[] = { sock, cancel_fd };
	size_t at = 0;

	if (conn_begin(&s->front, F_WORKER, 0, &at) < 0 ||
	    field_put_u64(&s->front.out, CONTROL_SLOT, (uint64_t)slot) < 0) {
		(void)close(sock); /* it ends by itself */
		(void)close(cancel_fd);
		return;
	}
	(void)conn_end(&s->front, at, fds, 2);
}

static void on_worker_gone(void *ctx, int slot)
{
	struct supervisor *s = ctx;

	(void)CONN_SAY(&s->front, F_GONE, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
}

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

static void on_front_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct supervisor *s = container_of(c, struct supervisor, front);
	int slot = slot_of(f);

	for (int i = 0; i < f->nfds; i++)
		(void)close(fds[i]);
	if (f->type == F_START && slot >= 0) {
		job_spawner_start(&s->spawner, slot);
	} else if (f->type == F_KILL && slot >= 0) {
		job_spawner_kill(&s->spawner, slot);
	} else if (f->type == F_READY && !s->told_ready) {
		s->told_ready = true;
		s->rest_ms = 0;
		s->config->ready(s->config->ctx);
	}
}

/* It has left or broken the protocol: its end follows. */
static void on_front_closed(struct conn *c, int err)
{
	struct supervisor *s = container_of(c, struct supervisor, front);

	(void)err;
	conn_done(c);
	(void)syscall(SYS_pidfd_send_signal, s->front_pidfd, SIGKILL, NULL, 0);
}

static int put_names(struct buf *b, enum control_tag tag, const char *const *names, int n)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++)
		r = field_put(b, tag, str_of(names[i]));
	return r;
}

static int front_begin(struct supervisor *s)
{
	const struct supervisor_config *c = s->config;
	int fds[CONTROL_LISTENERS], n = 0, r;
	size_t at = 0;

	r = conn_begin(&s->front, F_BEGIN, 0, &at);
	if (r == 0)
		r = field_put(&s->front.out, CONTROL_SECRET,
			      (struct str){ (const char *)s->secret, sizeof s->secret });
	if (r == 0)
		r = put_names(&s->front.out, CONTROL_DOMAIN, c->domains, c->ndomains);
	if (r == 0)
		r = put_names(&s->front.out, CONTROL_ORIGIN, c->origins, c->norigins);
	for (; n < s->config->nlisteners && r == 0; n++) {
		fds[n] = fcntl(s->config->listeners[n], F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0)
			r = -errno;
	}
	if (r == 0)
		return conn_end(&s->front, at, fds, n);
	while (n-- > 0)
		if (fds[n] >= 0)
			(void)close(fds[n]);
	return r;
}

static int front_spawn(struct supervisor *s)
{
	static const struct conn_ops ops = { .frame = on_front_frame, .closed = on_front_closed };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool root = geteuid() == ROOT;
	struct jail j = { .program = s->config->program,
			  .name = "cay",
			  .role = s->config->front_role,
			  .peer_fd = null,
			  .no_network = true,
			  .uid = root ? JAIL_UID : geteuid(),
			  .gid = root ? JAIL_UID : getegid() };
	int pair[2], r;

	if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	j.stream_fd = pair[1];
	r = jail_start(&j, &s->front_pid, &s->front_pidfd);
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	r = loop_add(&s->loop, &s->front_io, s->front_pidfd, EPOLLIN, on_front_exit);
	if (r < 0) {
		(void)close(pair[0]); /* which ends it */
		return r;
	}
	r = conn_init(&s->front, &s->loop, pair[0], &ops);
	return r < 0 ? r : front_begin(s);
}

static void front_start(struct supervisor *s)
{
	uint64_t ms = s->rest_ms ? s->rest_ms : REST_FIRST_MS;

	if (front_spawn(s) == 0 || s->front_pid)
		return;
	s->rest_ms = ms * 2 < REST_LAST_MS ? ms * 2 : REST_LAST_MS;
	loop_timer_set(&s->loop, &s->front_timer, ms * NS_PER_MS, on_front_due);
}

static void on_signal(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, signal_io);
	struct signalfd_siginfo info;

	(void)events;
	while (read(s->signal_fd, &info, sizeof info) > 0)
		;
	s->stopping = true;
	if (!s->front_pid) {
		loop_stop(&s->loop);
		return;
	}
	(void)conn_send(&s->front, F_STOP, 0, STR_NONE);
	loop_timer_set(&s->loop, &s->front_timer, STOP_MS * NS_PER_MS, on_stop_due);
}

static void on_keys(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, keys_io);
	/* An event has the name of a file behind it. */
	char data[4096] __attribute__((aligned(8)));
	bool changed = false;
	ssize_t n;

	(void)events;
	while ((n = read(s->keys_fd, data, sizeof data)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(data + at);

			changed |= e->len && strcmp(e->name, KEYS_CHANGED_FILE) == 0;
			at += (ssize_t)(sizeof *e + e->len);
		}
	if (changed && s->front_pid)
		(void)conn_send(&s->front, F_KEYS, 0, STR_NONE);
}

static int watch_signals(struct supervisor *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	return loop_add(&s->loop, &s->signal_io, s->signal_fd, EPOLLIN, on_signal);
}

static int watch_keys(struct supervisor *s)
{
	s->keys_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->keys_fd < 0 || inotify_add_watch(s->keys_fd, s->config->state->dir, IN_MOVED_TO) < 0)
		return -errno;
	return loop_add(&s->loop, &s->keys_io, s->keys_fd, EPOLLIN, on_keys);
}

static int run(struct supervisor *s, struct err *e)
{
	int r = loop_init(&s->loop);

	if (r == 0)
		r = watch_signals(s);
	if (r == 0)
		r = watch_keys(s);
	if (r < 0)
		return err_sys(e, -r, "start the server");
	job_spawner_init(&s->spawner);
	r = front_spawn(s);
	if (r < 0)
		return err_sys(e, -r, "start the server's front");
	r = loop_run(&s->loop);
	return r < 0 ? err_sys(e, -r, "serve") : 0;
}

int supervise(const struct supervisor_config *config, struct err *e)
{
	struct supervisor s = { .config = config,
				.signal_fd = FD_NONE,
				.keys_fd = FD_NONE,
				.front_pidfd = FD_NONE,
				.front.fd = FD_NONE };
	int r;

	s.spawner = (struct job_spawner){ .loop = &s.loop,
					  .program = config->program,
					  .argv = config->worker_argv,
					  .envp = config->worker_envp,
					  .started = on_worker_started,
					  .gone = on_worker_gone,
					  .ctx = &s };
	if (server_key_load(config->state, s.secret, e) < 0)
		return -1;
	r = run(&s, e);
	conn_done(&s.front);
	if (s.front_pid) {
		(void)syscall(SYS_pidfd_send_signal, s.front_pidfd, SIGKILL, NULL, 0);
		(void)waitpid(s.front_pid, NULL, 0);
	}
	job_spawner_done(&s.spawner);
	fd_close(&s.front_pidfd);
	fd_close(&s.signal_fd);
	fd_close(&s.keys_fd);
	loop_done(&s.loop);
	return r;
}
