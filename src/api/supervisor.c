/* SPDX-License-Identifier: Apache-2.0 */
#include "api/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/front_process.h"
#include "api/restart.h"
#include "api/server_key.h"
#include "base/clock.h"
#include "base/random.h"
#include "http/tls.h"
#include "ops/key.h"

enum { REST_FIRST_MS = 50, REST_LAST_MS = 5000, CERTS_LOOK_MS = 2000, EXEC_RETRY_MS = 5 };

struct supervisor {
	const struct supervisor_config *config;
	struct front_process_config front_config;
	struct loop loop;
	uint8_t secret[SERVER_SECRET];
	uint8_t ticket[HTTP_TLS_TICKET]; /* sessions outlive a front */
	struct front_process *fronts;	 /* all of them */
	struct front_process *front;	 /* that serves; NULL: none */
	struct loop_timer front_timer;	 /* start again */
	struct loop_timer certs_timer;
	uint64_t rest_ms;
	int signal_fd, keys_fd;
	struct loop_io signal_io, keys_io;
	struct restart restart;
	struct loop_timer exec_timer;
	uint64_t generation; /* restarts so far */
	bool told_ready, stopping;
};

static void say(const struct supervisor *s, const char *what, const struct err *e)
{
	char text[sizeof e->msg + 80];

	(void)snprintf(text, sizeof text, "%s%s%s", what, e ? ": " : "", e ? e->msg : "");
	s->config->say(s->config->ctx, text);
}

/* ---- the front ---- */

static int send_certs(struct supervisor *s, struct front_process *f)
{
	const struct certs *c = s->config->certs;
	size_t at = 0;
	int r = conn_begin(&f->control, F_TLS, 0, &at);

	if (r == 0)
		r = field_put(&f->control.out, CONTROL_CERT, buf_str(&c->chain));
	if (r == 0)
		r = field_put(&f->control.out, CONTROL_KEY, buf_str(&c->key));
	if (r == 0)
		r = field_put(&f->control.out, CONTROL_TICKET,
			      (struct str){ (const char *)s->ticket, sizeof s->ticket });
	return r < 0 ? r : conn_end(&f->control, at, NULL, 0);
}

static int put_names(struct buf *b, enum control_tag tag, const char *const *names, int n)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++)
		r = field_put(b, tag, str_of(names[i]));
	return r;
}

static int put_begin(const struct supervisor *s, struct buf *out)
{
	const struct supervisor_config *c = s->config;
	int r = field_put(out, CONTROL_SECRET,
			  (struct str){ (const char *)s->secret, sizeof s->secret });

	if (r == 0)
		r = put_names(out, CONTROL_DOMAIN, c->domains, c->ndomains);
	if (r == 0)
		r = put_names(out, CONTROL_ORIGIN, c->origins, c->norigins);
	if (r == 0)
		r = field_put_u64(out, CONTROL_GENERATION, s->generation);
	if (r == 0)
		r = field_put_u64(out, CONTROL_LOG, s->config->log != NULL);
	return r < 0 ? r : field_put_u64(out, CONTROL_TLS, s->config->tls_listeners);
}

static int send_begin(struct supervisor *s, struct front_process *f)
{
	int fds[CONTROL_LISTENERS], n = 0, r;
	size_t at = 0;

	r = conn_begin(&f->control, F_BEGIN, 0, &at);
	if (r == 0)
		r = put_begin(s, &f->control.out);
	for (; n < s->config->nlisteners && r == 0; n++) {
		fds[n] = fcntl(s->config->listeners[n], F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0)
			r = -errno;
	}
	if (r == 0)
		return conn_end(&f->control, at, fds, n);
	while (n-- > 0)
		if (fds[n] >= 0)
			(void)close(fds[n]);
	return r;
}

static void send_end(struct front_process *f, uint8_t type, int fd)
{
	size_t at = 0;

	if (conn_begin(&f->control, type, 0, &at) < 0)
		(void)close(fd);
	else
		(void)conn_end(&f->control, at, &fd, 1);
}

/* The new one serves: older ones give it their connections and end. */
static void retire_others(struct supervisor *s, struct front_process *heir)
{
	int pair[2];

	for (struct front_process *f = s->fronts; f; f = f->next) {
		if (f == heir || !f->pid || !f->old)
			continue;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
			front_process_stop(f);
			continue;
		}
		send_end(heir, F_HEIR, pair[0]);
		send_end(f, F_RETIRE, pair[1]);
	}
}

static void on_front_ready(struct front_process *f)
{
	struct supervisor *s = f->user;

	s->rest_ms = 0;
	retire_others(s, f);
	if (!s->told_ready)
		s->config->ready(s->config->ctx);
	s->told_ready = true;
}

static void on_front_due(struct loop_timer *t);

static void start_front_later(struct supervisor *s)
{
	uint64_t ms = s->rest_ms ? s->rest_ms : REST_FIRST_MS;

	s->rest_ms = ms * 2 < REST_LAST_MS ? ms * 2 : REST_LAST_MS;
	loop_timer_set(&s->loop, &s->front_timer, ms * NS_PER_MS, on_front_due);
}

static bool some_front_runs(const struct supervisor *s)
{
	for (const struct front_process *f = s->fronts; f; f = f->next)
		if (f->pid)
			return true;
	return false;
}

static void on_front_ended(struct front_process *f)
{
	struct supervisor *s = f->user;

	if (s->stopping && !some_front_runs(s))
		loop_stop(&s->loop);
	if (f != s->front)
		return;
	s->front = NULL;
	if (!s->stopping)
		start_front_later(s);
}

static void on_front_log(struct front_process *f, struct str body)
{
	struct supervisor *s = f->user;
	struct access_record r;

	if (s->config->log && access_record_read(body, &r) == 0)
		access_log_write(s->config->log, &r);
}

static void on_front_gone(struct front_process *f)
{
	struct supervisor *s = f->user;
	struct front_process **at = &s->fronts;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
}

static const struct front_process_ops front_ops = {
	.ready = on_front_ready, .ended = on_front_ended, .log = on_front_log, .gone = on_front_gone
};

static int start_front(struct supervisor *s)
{
	struct front_process *f;
	int r = front_process_new(&f, &s->loop, &s->front_config, &front_ops, s);

	if (r < 0)
		return r;
	r = s->config->certs ? send_certs(s, f) : 0;
	if (r == 0)
		r = send_begin(s, f);
	if (r < 0) {
		front_process_free(f);
		return r;
	}
	f->next = s->fronts;
	s->fronts = s->front = f;
	return 0;
}

static void on_front_due(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, front_timer);

	if (start_front(s) < 0)
		start_front_later(s);
}

/* ---- certificates ---- */

/* Files that cannot be used change nothing: clients go on with the certificate that was read last.
 */
static void reload_certs(struct supervisor *s)
{
	struct err e = { 0 };

	if (certs_load(s->config->certs, &e) < 0) {
		say(s, "The old certificate stays in use", &e);
		return;
	}
	for (struct front_process *f = s->fronts; f; f = f->next)
		if (f->pid)
			(void)send_certs(s, f);
	say(s, "The certificate was read again", NULL);
}

/* Polled: a certificate often is a link to a link to a file, and any of them may be replaced. */
static void on_certs_look(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, certs_timer);

	if (certs_changed(s->config->certs))
		reload_certs(s);
	loop_timer_set(&s->loop, t, CERTS_LOOK_MS * NS_PER_MS, on_certs_look);
}

/* ---- restart ---- */

/* Bytes that were read but not handled would be lost. */
static bool is_quiet(const struct front_process *f)
{
	return f->control.in.len == 0 && f->control.out.len == 0 && f->control.fdq_len == 0;
}

static bool leave_front(struct handover *h, const struct front_process *f)
{
	struct handover_front *to = &h->fronts[h->nfronts];

	if (h->nfronts == HANDOVER_FRONTS || !is_quiet(f))
		return false;
	*to = (struct handover_front){ .pid = f->pid, .fd = f->control.fd };
	for (int i = 0; i < JOB_WORKERS; i++)
		to->workers[i] = f->workers.processes[i].pid;
	h->nfronts++;
	return true;
}

/* False: not just now. */
static bool leave_all(const struct supervisor *s, struct handover *h)
{
	*h = (struct handover){ .generation = s->generation };
	memcpy(h->ticket, s->ticket, sizeof h->ticket);
	for (int i = 0; i < s->config->nlisteners; i++) {
		h->listeners[i].fd = s->config->listeners[i];
		if (!str_copy(h->listeners[i].name, HANDOVER_NAME,
			      str_of(s->config->listener_names[i])))
			return false;
		h->nlisteners++;
	}
	/* Workers whose front has ended finish their jobs first: nobody else would reap them. */
	for (const struct front_process *f = s->fronts; f; f = f->next)
		if (!f->pid || !leave_front(h, f))
			return false;
	return true;
}

static void on_exec_due(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, exec_timer);
	struct handover h;
	struct err e = { 0 };

	if (s->stopping)
		return;
	if (!leave_all(s, &h)) {
		loop_timer_set(&s->loop, t, EXEC_RETRY_MS * NS_PER_MS, on_exec_due);
		return;
	}
	(void)handover_exec(&h, s->config->program, s->config->restart_argv, &e);
	say(s, "The server was not restarted", &e);
}

static void on_checked(struct restart *r, bool good)
{
	struct supervisor *s = r->user;

	if (good)
		loop_timer_set(&s->loop, &s->exec_timer, 0, on_exec_due);
	else
		say(s, "The server was not restarted: the new program cannot start (see above)",
		    NULL);
}

/* The oldest ends now: too many fronts would have to be handed over. */
static void make_room(const struct supervisor *s)
{
	struct front_process *oldest = NULL;
	int n = 0;

	for (struct front_process *f = s->fronts; f; f = f->next) {
		n += f->pid != 0;
		oldest = f;
	}
	if (oldest && n >= HANDOVER_FRONTS)
		front_process_stop(oldest);
}

static void begin_restart(struct supervisor *s)
{
	struct err e = { 0 };
	int r;

	make_room(s);
	r = restart_check(&s->restart, s->config->program, s->config->restart_argv);
	if (r < 0 && r != -EALREADY) {
		(void)err_sys(&e, -r, "run '%s'", s->config->program);
		say(s, "The server was not restarted", &e);
	}
}

static int adopt_front(struct supervisor *s, const struct handover_front *left)
{
	struct front_process *f;
	int r = front_process_adopt(&f, &s->loop, &s->front_config, &front_ops, s, left->pid,
				    left->fd);

	if (r < 0)
		return r;
	f->next = s->fronts;
	s->fronts = f;
	for (int i = 0; i < JOB_WORKERS; i++)
		if (left->workers[i])
			(void)job_spawner_adopt(&f->workers, i, left->workers[i]);
	return 0;
}

static int take_over(struct supervisor *s, struct handover *left)
{
	int r = 0;

	s->generation = left->generation + 1;
	memcpy(s->ticket, left->ticket, sizeof s->ticket);
	/* The oldest is the last of the list, as before. */
	for (int i = left->nfronts - 1; i >= 0 && r == 0; i--)
		r = adopt_front(s, &left->fronts[i]);
	return r;
}

/* ---- signals and keys ---- */

static void stop(struct supervisor *s)
{
	s->stopping = true;
	loop_timer_stop(&s->loop, &s->front_timer);
	if (!some_front_runs(s))
		loop_stop(&s->loop);
	for (struct front_process *f = s->fronts; f; f = f->next)
		front_process_stop(f);
}

/* A log that was renamed (logrotate) is made anew. */
static void reopen_log(struct supervisor *s)
{
	struct err e = { 0 };

	if (access_log_open(s->config->log, &e) < 0)
		say(s, "The access log stays where it was", &e);
}

static void reload(struct supervisor *s)
{
	/* Any option may be another one now. A file with an error changes nothing. */
	if (s->config->config_changed(s->config->ctx)) {
		begin_restart(s);
		return;
	}
	if (s->config->certs)
		reload_certs(s);
	if (s->config->log)
		reopen_log(s);
}

static void on_signal(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, signal_io);
	struct signalfd_siginfo info;

	(void)events;
	while (read(s->signal_fd, &info, sizeof info) > 0) {
		if (info.ssi_signo == SIGHUP)
			reload(s);
		else if (info.ssi_signo == SIGUSR2)
			begin_restart(s);
		else
			stop(s);
	}
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
	for (struct front_process *f = s->fronts; changed && f; f = f->next)
		if (f->pid)
			(void)conn_send(&f->control, F_KEYS, 0, STR_NONE);
}

static int watch_signals(struct supervisor *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGUSR2);
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
	if (r == 0)
		r = s->config->left ? take_over(s, s->config->left)
				    : random_bytes(s->ticket, sizeof s->ticket);
	if (r < 0)
		return err_sys(e, -r, "start the server");
	if (s->config->certs)
		loop_timer_set(&s->loop, &s->certs_timer, CERTS_LOOK_MS * NS_PER_MS, on_certs_look);
	r = start_front(s);
	if (r < 0)
		return err_sys(e, -r, "start the server's front");
	r = loop_run(&s->loop);
	return r < 0 ? err_sys(e, -r, "serve") : 0;
}

int supervise(const struct supervisor_config *config, struct err *e)
{
	struct supervisor s = { .config = config, .signal_fd = FD_NONE, .keys_fd = FD_NONE };
	int r;

	s.front_config = (struct front_process_config){ .program = config->program,
							.role = config->front_role,
							.worker_argv = config->worker_argv,
							.worker_envp = config->worker_envp };
	if (server_key_load(config->state, s.secret, e) < 0)
		return -1;
	s.restart = (struct restart){ .loop = &s.loop, .checked = on_checked, .user = &s };
	r = run(&s, e);
	restart_done(&s.restart);
	while (s.fronts) {
		struct front_process *f = s.fronts;

		s.fronts = f->next;
		front_process_free(f);
	}
	fd_close(&s.signal_fd);
	fd_close(&s.keys_fd);
	loop_done(&s.loop);
	return r;
}
