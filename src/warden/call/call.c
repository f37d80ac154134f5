/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/call.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "sys/process/fdpass.h"
#include "warden/call/stream.h"
#include "warden/features.h"
#include "warden/limit/limits.h"
#include "warden/limit/pause.h"
#include "warden/net/net.h"
#include "warden/record.h"

struct call *call_by_id(struct warden *w, uint32_t id)
{
	for (struct call *c = w->calls; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

struct call *call_by_job(struct warden *w, uint32_t job)
{
	if (w->spare && w->spare->call->job == job)
		return w->spare->call;
	for (struct call *c = w->calls; c; c = c->next)
		if (c->job == job)
			return c;
	return NULL;
}

struct call *call_of_client(struct client *client, uint32_t chan)
{
	for (struct call *c = client->w->calls; c; c = c->next)
		if (c->client == client && c->chan == chan && !c->answered)
			return c;
	return NULL;
}

static void close_socket(struct warden *w, int *fd, struct loop_io *io)
{
	if (*fd >= 0)
		loop_del(&w->loop, io);
	fds_close_socket(fd);
}

void call_free(struct call *c)
{
	struct warden *w = c->w;

	if (c->spare)
		spare_free(c->spare);
	for (struct call **at = &w->calls; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			w->ncalls--;
			break;
		}
	loop_timer_stop(&w->loop, &c->timeout);
	close_socket(w, &c->report_fd, &c->report_io);
	close_socket(w, &c->gate_fd, &c->gate_io);
	call_io_close(c);
	if (c->watch)
		watch_call_free(c->watch);
	if (c->group[0])
		(void)w->driver->group_remove(w->cell, c->group);
	net_call_free(c);
	record_undo(c);
	free(c);
}

static void name_group(uint32_t number, char name[GROUP_NAME])
{
	(void)snprintf(name, GROUP_NAME, "call-%u", number);
}

void call_spare_group(struct warden *w)
{
	char name[GROUP_NAME];

	if (!warden_has(w, HAS_GROUPS))
		return;
	name_group(w->last_group + 1, name);
	if (w->driver->group_open(w->cell, name, &w->spare_group) < 0)
		w->spare_group = FD_NONE;
}

/* Free the call after the client has its answer and every process of the call is gone. */
static void maybe_free(struct call *c)
{
	struct warden *w = c->w;

	if (!c->answered || !c->watch_idle || c == w->final)
		return;
	/* Without the listener the processes are unknown; the end of the pipes is enough. */
	if (c->out.fd >= 0 || c->err.fd >= 0)
		return;
	walk_window_close(w, c->id);
	call_free(c);
	if (w->state == SANDBOX_RUNNING)
		generation_ahead(w);
}

/* The same, just after the answer: now there is time to prepare the next call. */
static void free_and_prepare(struct call *c)
{
	struct warden *w = c->w;

	if (!w->running)
		(void)sched_yield(); /* let the waiting client run first */
	maybe_free(c);
	spare_make(w);
}

static void on_watch_idle(void *ctx)
{
	struct call *c = ctx;

	c->watch_idle = true;
	if (c->answered && (c->out.fd >= 0 || c->err.fd >= 0)) {
		/* The last process is gone: the pipes contain the last output. */
		call_io_close(c);
	}
	maybe_free(c);
}

void call_watch(struct call *c, int listener_fd)
{
	int r = watch_call_new(c->w->watch, c->id, c->event, listener_fd, on_watch_idle, c,
			       &c->watch);

	if (r < 0)
		warden_fail(c->w, "watch a call", -r);
}

/* The child of init has installed its filter and sends the listener. */
static void on_report(struct loop_io *io, uint32_t events)
{
	struct call *c = container_of(io, struct call, report_io);
	int fd = FD_NONE, n = 0, r;
	char byte;

	(void)events;
	r = fdpass_recv(c->report_fd, &byte, 1, &fd, 1, &n);
	close_socket(c->w, &c->report_fd, &c->report_io);
	if (r < 0 || n != 1) {
		c->watch_idle = true; /* the child ended before it could send, or has none */
		maybe_free(c);
		return;
	}
	call_watch(c, fd);
}

/* The first command, if no listener stops its exec: it waits at its gate to be checked. */
static void on_gate(struct loop_io *io, uint32_t events)
{
	struct call *c = container_of(io, struct call, gate_io);
	pid_t pid;

	(void)events;
	/* Otherwise the command ended before its gate, and the next command is checked. */
	if (fdpass_recv_sender(c->gate_fd, &pid) == 0 && guard_first_exec(c->w, pid))
		(void)send(c->gate_fd, "g", 1, MSG_NOSIGNAL);
	close_socket(c->w, &c->gate_fd, &c->gate_io);
}

static void on_timeout(struct loop_timer *t)
{
	call_kill(container_of(t, struct call, timeout), "timeout");
}

/* theirs: the child's end, which passes to init. */
static int open_socket(struct warden *w, int *ours, int *theirs, struct loop_io *io,
		       void (*on_byte)(struct loop_io *, uint32_t))
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ours = pair[0];
	*theirs = pair[1];
	return loop_add(&w->loop, io, *ours, EPOLLIN, on_byte);
}

static int open_report(struct call *c, int fds[FD_ROLES])
{
	struct warden *w = c->w;
	int r = 0;

	c->watch_idle = !w->watch || c->op != CALL_EXEC;
	if (stream_is_needed(w)) /* no descriptor can pass: already verified, or never */
		w->guarded = true;
	if (c->op != CALL_EXEC)
		return 0;
	if (w->watch)
		r = open_socket(w, &c->report_fd, &fds[FD_REPORT], &c->report_io, on_report);
	if (r < 0 || w->trace_level == TRACE_FULL || w->guarded)
		return r;
	r = open_socket(w, &c->gate_fd, &fds[FD_GATE], &c->gate_io, on_gate);
	return r < 0 ? r : fdpass_ask_sender(c->gate_fd);
}

int call_open_group(struct call *c, int fds[FD_ROLES])
{
	struct warden *w = c->w;
	struct stat st;
	int r = 0;

	if (!warden_has(w, HAS_GROUPS))
		return 0;
	name_group(++w->last_group, c->group);
	fds[FD_CGROUP] = TAKE_FD(w->spare_group);
	if (fds[FD_CGROUP] < 0)
		r = w->driver->group_open(w->cell, c->group, &fds[FD_CGROUP]);
	if (r < 0)
		return r;
	c->group_id = w->net && fstat(fds[FD_CGROUP], &st) == 0 ? st.st_ino : 0;
	return 0;
}

struct call *call_new(struct warden *w)
{
	struct call *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	*c = (struct call){ .w = w, .report_fd = FD_NONE, .gate_fd = FD_NONE, .in_fd = FD_NONE };
	c->out = c->err = (struct outlet){ .call = c, .fd = FD_NONE, .drained = true };
	return c;
}

/* Add it to the sandbox's calls. */
static int enroll(struct call *c, struct client *client, uint32_t chan, const struct ask *a,
		  struct err *e)
{
	struct warden *w = c->w;

	c->id = w->last_call + 1;
	if (record_new(c, a, e) < 0)
		return -1;
	if (a->detached) {
		if (viewer_begin(client, chan, a, c->record, false, e) < 0)
			return -1;
	} else {
		c->client = client;
		c->chan = chan;
		c->limited = a->has_window;
		c->credit = a->window;
	}
	c->op = a->op;
	c->tty = a->tty;
	c->final = a->final && client->creator;
	c->started_ns = clock_mono_ns();
	c->disk_full = w->disk_full;
	c->next = w->calls;
	w->calls = c;
	w->ncalls++;
	return 0;
}

int call_begin(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e)
{
	struct warden *w = c->w;
	int r;

	net_call_begin(c);
	if (limits_open_call(c, a, fds, e) < 0)
		return -1;
	ask_trace(a, c);
	r = trace_end(&w->trace);
	if (r == 0)
		r = trace_flush(&w->trace);
	if (r < 0)
		return err_sys(e, -r, "write the trace");
	w->last_call = c->id;
	walk_window_open(w, c->id, c->event);
	return 0;
}

static int launch(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e)
{
	int r;

	c->job = c->id;
	if (call_io_open(c, (unsigned)a->rows, (unsigned)a->cols, fds, e) < 0)
		return -1;
	r = open_report(c, fds);
	if (r == 0)
		r = call_open_group(c, fds);
	if (r < 0)
		return err_sys(e, -r, "prepare a call");
	if (call_begin(c, a, fds, e) < 0)
		return -1;
	if (!guard_first_order(c->w)) /* the sandbox ends, and the call with it */
		return 0;
	r = ask_send(a, c, fds);
	stream_resize(c, (unsigned)a->rows, (unsigned)a->cols);
	return r < 0 ? err_sys(e, -r, "send the request to init") : 0;
}

/* The same request with the same caller's id: join the call that was already started. */
static int join_known(struct client *client, uint32_t chan, const struct ask *a, struct record *r,
		      struct err *e)
{
	uint8_t hash[SHA256_SIZE];

	record_hash(a, hash);
	if (!r->detached || memcmp(hash, r->hash, sizeof hash) != 0) {
		(void)err_set(e, ERR_CONFLICT,
			      "call %u has the id '%.*s', and was asked for otherwise", r->id,
			      STR_ARG(a->call_id));
		return err_code(e, "call.conflict", NULL);
	}
	return viewer_begin(client, chan, a, r, true, e);
}

int call_start(struct client *client, uint32_t chan, struct str body, struct err *e)
{
	auto_done(buf_done) struct buf order = BUF_INIT(LIMIT_ORDER);
	struct warden *w = client->w;
	int fds[FD_ROLES], r;
	struct record *known;
	struct call *c;
	struct ask a;

	for (int i = 0; i < FD_ROLES; i++)
		fds[i] = FD_NONE;
	if (ask_parse(&a, body, e) < 0 || (a.tty && features_need(w, HAS_TERMINAL, e) < 0))
		return -1;
	/* A client of version 2 never grants credit. */
	if (client->version < 3)
		a.has_window = a.detached = a.idempotent = false;
	if (w->state == SANDBOX_PAUSED && pause_leave(w, "a call was asked for", e) < 0)
		return -1;
	if (w->refusal.kind != ERR_NONE) {
		*e = w->refusal;
		return -1;
	}
	if (w->state != SANDBOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	if (!guard_is_whole(w) && (w->ncalls > 0 || a.op != CALL_EXEC || !client->creator))
		return err_set(e, ERR_CONFLICT, "the sandbox is still being built");
	if (call_of_client(client, chan) || viewer_of(client, chan))
		return err_set(e, ERR_INVALID, "channel %u is in use", chan);
	known = a.idempotent ? record_find(w, a.call_id) : NULL;
	if (known)
		return join_known(client, chan, &a, known, e);
	/* Calls that left processes behind count too: each holds descriptors of the warden. */
	if (w->ncalls >= LIMIT_CALLS)
		return err_set(e, ERR_LIMIT, "%d calls are running or left processes behind",
			       LIMIT_CALLS);
	if (!a.timeout_ms)
		a.timeout_ms = w->defaults.timeout_ms;
	c = spare_take(w, &a, &order);
	if (!c)
		c = call_new(w);
	if (!c)
		return err_sys(e, ENOMEM, "start a call");
	r = enroll(c, client, chan, &a, e);
	if (r == 0)
		r = c->job ? spare_launch(c, &a, &order, e) : launch(c, &a, fds, e);
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&fds[i]);
	if (r < 0) {
		call_free(c);
		return -1;
	}
	w->running++;
	expiry_activity(w);
	disk_wake(w);
	if (a.timeout_ms)
		loop_timer_set(&w->loop, &c->timeout, a.timeout_ms * NS_PER_MS, on_timeout);
	guard_look_later(w, VERIFY_BUILT);
	if (!guard_is_whole(w))
		ask_prefetch(&a, w);
	return 0;
}

void call_started(struct call *c, int pid)
{
	c->started = true;
	record_started(c, pid);
	if (c->client)
		(void)CONN_MENTION(&c->client->conn, MSG_C_STARTED, c->chan,
				   { TAG_CALL, c->id, NULL }, { TAG_PID, (uint64_t)pid, NULL },
				   { TAG_WARNING, 0, c->warning });
}

static void mark_answered(struct call *c)
{
	c->answered = true;
	c->w->running--;
	expiry_activity(c->w);
	loop_timer_stop(&c->w->loop, &c->timeout);
	/* The listener cannot arrive any more, so there are no processes to watch. */
	if (c->report_fd < 0 && !c->spare && !c->watch)
		c->watch_idle = true;
	call_resume(c); /* from now on output is dropped */
	walk_soon(c->w, true);
}

/* The client gets its answer when every process is gone and the trace is complete: end.c. */
static void end_with(struct call *c)
{
	c->w->final = c;
	warden_end(c->w, END_COMMAND, "its command has ended");
}

/* Report an end only after it is in the trace. */
static void say_end(struct call *c)
{
	if (c->w->refusal.kind != ERR_NONE)
		call_say_error(c, &c->w->refusal, STAGE_SETUP);
	else
		call_say_exit(c);
}

/* If several calls are final, the sandbox ends with the first of them that ends. */
static bool is_last(const struct call *c)
{
	return c->final && (!c->w->final || c->w->final == c);
}

static void answer(struct call *c)
{
	bool last = is_last(c);

	c->duration_us = (clock_mono_ns() - c->started_ns) / NS_PER_US;
	if (c->watch)
		watch_call_collect(c->watch);
	call_trace_exit(c);
	if (!last)
		say_end(c);
	mark_answered(c);
	if (last)
		end_with(c);
}

void call_say_final(struct call *c)
{
	struct warden *w = c->w;

	if (!w->final_failed)
		say_end(c);
	else
		call_say_error(c, &w->final_error, w->final_stage);
	w->final = NULL;
	call_free(c);
}

/* Called whenever the command may have ended with all its output passed on. May free c. */
void call_check_done(struct call *c)
{
	if (!c->answered) {
		if (!c->exited || !call_io_drained(c))
			return;
		answer(c);
		free_and_prepare(c);
		return;
	}
	maybe_free(c);
}

void call_exited(struct call *c, int status, uint64_t cpu_us, uint64_t maxrss_kb)
{
	if (c->exited)
		return;
	if (spare_ended(c))
		return;
	c->exited = true;
	c->status = status;
	c->cpu_us = cpu_us;
	c->maxrss_kb = maxrss_kb;
	stream_finish(c);
	limits_close_call(c);
	disk_close_call(c);
	call_check_done(c);
}

void call_failed(struct call *c, enum run_stage stage, int err, struct str text)
{
	struct trace *t = &c->w->trace;
	struct err e;

	if (c->answered)
		return;
	if (spare_ended(c))
		return;
	err_set(&e, stage == STAGE_EXEC && err == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, "%.*s: %s",
		STR_ARG(text),
		stage == STAGE_EXEC && err == ENOENT ? "command not found" : strerror(err));
	e.sys = err;
	(void)trace_begin(t, "call.failed", c->id, c->event);
	trace_text(t, "error", str_of(e.msg));
	warden_trace_end(c->w);
	c->exited = true;
	call_io_close(c);
	mark_answered(c);
	if (is_last(c)) {
		c->w->final_failed = true;
		c->w->final_error = e;
		c->w->final_stage = stage;
		end_with(c);
		return;
	}
	call_say_error(c, &e, stage);
	free_and_prepare(c);
}

void call_signal(struct call *c, int sig)
{
	if (sig >= 1 && sig < _NSIG)
		(void)CONN_SAY(&c->w->init, MSG_SIGNAL, c->job,
			       { TAG_SIGNAL, (uint64_t)sig, NULL });
}

void call_kill(struct call *c, const char *reason)
{
	if (!c->kill_reason && !c->exited)
		c->kill_reason = reason;
	if (c->group[0])
		(void)c->w->driver->group_kill(c->w->cell, c->group);
	if (c->watch)
		watch_call_kill(c->watch, SIGKILL);
	call_signal(c, SIGKILL);
}

void call_orphan(struct call *c)
{
	c->client = NULL;
	if (!c->answered)
		call_kill(c, "client_gone");
	call_resume(c);
}

void call_end(struct call *c, const char *reason)
{
	if (c->watch)
		watch_call_finish(c->watch);
	if (!c->answered) {
		if (!c->exited) {
			if (!c->kill_reason)
				c->kill_reason = reason;
			c->status = SIGKILL;
			c->exited = true;
		}
		(void)call_io_drained(c);
		answer(c);
	}
	walk_window_close(c->w, c->id);
	if (c != c->w->final)
		call_free(c);
}
