/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sys/fdpass.h"
#include "warden/limits.h"
#include "warden/net.h"
#include "warden/pause.h"

struct call *call_by_id(struct warden *w, uint32_t id)
{
	for (struct call *c = w->calls; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

struct call *call_by_job(struct warden *w, uint32_t job)
{
	if (w->spare && w->spare->job == job)
		return w->spare;
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

void call_free(struct call *c)
{
	struct warden *w = c->w;

	if (c == w->spare)
		w->spare = NULL;
	for (struct call **at = &w->calls; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			w->ncalls--;
			break;
		}
	loop_timer_stop(&w->loop, &c->timeout);
	if (c->report_fd >= 0)
		loop_del(&w->loop, &c->report_io);
	fd_close(&c->report_fd);
	call_io_close(c);
	if (c->watch)
		watch_call_free(c->watch);
	if (c->group[0])
		(void)cgroup_remove_leaf(&w->cell.cgroup, c->group);
	net_call_free(c);
	free(c);
}

static void name_group(uint32_t number, char name[GROUP_NAME])
{
	(void)snprintf(name, GROUP_NAME, "call-%u", number);
}

void call_spare_group(struct warden *w)
{
	char name[GROUP_NAME];

	if (!w->cell.has_cgroup)
		return;
	name_group(w->last_group + 1, name);
	w->spare_group = cgroup_leaf(&w->cell.cgroup, name);
}

/* Freed when the client has its answer and no process of the call is left. */
static void maybe_free(struct call *c)
{
	struct warden *w = c->w;

	if (!c->answered || !c->watch_idle || c == w->final)
		return;
	/* Without the listener we cannot know; the pipes' end tells enough. */
	if (c->out.fd >= 0 || c->err.fd >= 0)
		return;
	walk_window_close(w, c->id);
	call_free(c);
	if (w->state == SANDBOX_RUNNING)
		generation_ahead(w);
}

/* As above, when it has just been answered: there is time for the next one. */
static void free_and_prepare(struct call *c)
{
	struct warden *w = c->w;

	if (!w->running)
		(void)sched_yield(); /* who waits for the answer goes first */
	maybe_free(c);
	if (!w->running)
		generation_seal(w);
	spare_make(w);
}

static void on_watch_idle(void *ctx)
{
	struct call *c = ctx;

	c->watch_idle = true;
	if (c->answered && (c->out.fd >= 0 || c->err.fd >= 0)) {
		/* Its last process is gone: what is in the pipes now is all there ever is. */
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
	loop_del(&c->w->loop, &c->report_io);
	fd_close(&c->report_fd);
	if (r < 0 || n != 1) {
		c->watch_idle = true; /* it ended before it came so far */
		maybe_free(c);
		return;
	}
	call_watch(c, fd);
}

/* The first command where no listener will stop its exec: it waits for us to look at it. */
static void on_gate(struct loop_io *io, uint32_t events)
{
	struct call *c = container_of(io, struct call, report_io);
	pid_t pid;

	(void)events;
	/* Else it ended before it came so far, and the next one is looked at. */
	if (fdpass_recv_sender(c->report_fd, &pid) == 0 && guard_first_exec(c->w, pid))
		(void)send(c->report_fd, "g", 1, MSG_NOSIGNAL);
	loop_del(&c->w->loop, &c->report_io);
	fd_close(&c->report_fd);
}

static void on_timeout(struct loop_timer *t)
{
	call_kill(container_of(t, struct call, timeout), "timeout");
}

static int open_report(struct call *c, int fds[FD_ROLES])
{
	bool full = c->w->trace_level == TRACE_FULL;
	int pair[2], r;

	c->watch_idle = !full || c->op != OP_EXEC;
	if (c->op != OP_EXEC || (!full && c->w->guarded))
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->report_fd = pair[0];
	fds[full ? FD_REPORT : FD_GATE] = pair[1];
	r = full ? 0 : fdpass_ask_sender(c->report_fd);
	if (r == 0)
		r = loop_add(&c->w->loop, &c->report_io, c->report_fd, EPOLLIN,
			     full ? on_report : on_gate);
	return r;
}

int call_open_group(struct call *c, int fds[FD_ROLES])
{
	struct warden *w = c->w;
	struct stat st;
	int fd;

	if (!w->cell.has_cgroup)
		return 0;
	name_group(++w->last_group, c->group);
	fd = w->spare_group >= 0 ? TAKE_FD(w->spare_group) : cgroup_leaf(&w->cell.cgroup, c->group);
	if (fd < 0)
		return fd;
	fds[FD_CGROUP] = fd;
	c->group_id = w->net && fstat(fd, &st) == 0 ? st.st_ino : 0;
	return 0;
}

struct call *call_new(struct warden *w)
{
	struct call *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	*c = (struct call){ .w = w, .report_fd = FD_NONE, .in_fd = FD_NONE };
	c->out = c->err = (struct outlet){ .call = c, .fd = FD_NONE, .drained = true };
	return c;
}

/* From now on it is one of the sandbox's calls. */
static void enroll(struct call *c, struct client *client, uint32_t chan, const struct ask *a)
{
	struct warden *w = c->w;

	c->client = client;
	c->chan = chan;
	c->id = w->last_call + 1;
	c->op = a->op;
	c->tty = a->tty;
	c->final = a->final && client->creator;
	c->started_ns = clock_mono_ns();
	c->disk_full = w->disk_full;
	c->next = w->calls;
	w->calls = c;
	w->ncalls++;
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
	walk_window_open(w, c->id);
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
	if (!guard_first_order(c->w)) /* it ends, and the call with it */
		return 0;
	r = ask_send(a, c, fds);
	return r < 0 ? err_sys(e, -r, "send the request to init") : 0;
}

int call_start(struct client *client, uint32_t chan, struct str body, struct err *e)
{
	auto_done(buf_done) struct buf order = BUF_INIT(LIMIT_ORDER);
	struct warden *w = client->w;
	int fds[FD_ROLES], r;
	struct call *c;
	struct ask a;

	for (int i = 0; i < FD_ROLES; i++)
		fds[i] = FD_NONE;
	if (ask_parse(&a, body, e) < 0)
		return -1;
	if (w->state == SANDBOX_PAUSED && pause_leave(w, "a call was asked for", e) < 0)
		return -1;
	if (w->refusal.kind != ERR_NONE) {
		*e = w->refusal;
		return -1;
	}
	if (w->state != SANDBOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	if (!guard_is_whole(w) && (w->ncalls > 0 || a.op != OP_EXEC || !client->creator))
		return err_set(e, ERR_CONFLICT, "the sandbox is still being built");
	if (a.after_switch && !client->switched)
		return err_set(e, ERR_CONFLICT, "what it was to begin with has made no layer");
	if (call_of_client(client, chan))
		return err_set(e, ERR_INVALID, "channel %u is in use", chan);
	/* Calls that left processes behind count: each holds descriptors of ours. */
	if (w->ncalls >= LIMIT_CALLS)
		return err_set(e, ERR_LIMIT, "%d calls are running or left processes behind",
			       LIMIT_CALLS);
	generation_stay(w);
	if (!a.timeout_ms)
		a.timeout_ms = w->defaults.timeout_ms;
	c = spare_take(w, &a, &order);
	if (!c)
		c = call_new(w);
	if (!c)
		return err_sys(e, ENOMEM, "start a call");
	enroll(c, client, chan, &a);
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
	guard_look_later(w, LOOK_BUILT);
	if (!guard_is_whole(w))
		ask_foresee(&a, w);
	return 0;
}

void call_started(struct call *c, int pid)
{
	c->started = true;
	if (c->client)
		(void)CONN_MENTION(&c->client->conn, MSG_C_STARTED, c->chan,
				   { TAG_CALL, c->id, NULL }, { TAG_PID, (uint64_t)pid, NULL },
				   { TAG_WARNING, 0, c->warning });
}

static const char *reason_of(const struct call *c)
{
	if (c->kill_reason)
		return c->kill_reason;
	return WIFSIGNALED(c->status) ? "signal" : "exit";
}

static void trace_exit(struct call *c)
{
	struct trace *t = &c->w->trace;

	(void)trace_begin(t, "call.exit", c->id, c->event);
	if (WIFSIGNALED(c->status))
		trace_num(t, "signal", WTERMSIG(c->status));
	else
		trace_num(t, "code", WEXITSTATUS(c->status));
	trace_text(t, "reason", str_of(reason_of(c)));
	trace_num(t, "duration_us", (int64_t)c->duration_us);
	trace_num(t, "cpu_us", (int64_t)c->cpu_us);
	trace_num(t, "maxrss_kb", (int64_t)c->maxrss_kb);
	trace_num(t, "out_bytes", (int64_t)c->out.bytes);
	trace_num(t, "err_bytes", (int64_t)c->err.bytes);
	net_trace_denied(c);
	warden_trace_end(c->w);
}

static int put_exit(struct buf *out, const struct call *c)
{
	const struct {
		uint16_t tag;
		uint64_t value;
	} numbers[] = {
		{ TAG_CALL, c->id },
		{ TAG_STATUS, (uint64_t)c->status },
		{ TAG_DURATION_US, c->duration_us },
		{ TAG_CPU_US, c->cpu_us },
		{ TAG_MAXRSS_KB, c->maxrss_kb },
		{ TAG_OUT_BYTES, c->out.bytes },
		{ TAG_ERR_BYTES, c->err.bytes },
		{ TAG_OOM_KILLS, c->oom_kills },
		{ c->oom_own ? TAG_CALL_MEMORY : TAG_MEMORY, c->oom_limit },
	};
	int r = field_put_c(out, TAG_REASON, reason_of(c));

	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		r = field_put_u64(out, numbers[i].tag, numbers[i].value);
	return r < 0 ? r : net_put_denied(c, out);
}

static void say_exit(struct call *c)
{
	struct conn *to = c->client ? &c->client->conn : NULL;
	size_t at = 0;

	if (!to || conn_begin(to, MSG_C_EXIT, c->chan, &at) < 0)
		return;
	if (put_exit(&to->out, c) < 0)
		conn_cancel(to, at);
	else
		(void)conn_end(to, at, NULL, 0);
}

static void mark_answered(struct call *c)
{
	c->answered = true;
	c->w->running--;
	expiry_activity(c->w);
	loop_timer_stop(&c->w->loop, &c->timeout);
	/* Before the listener arrived there is nobody whom it could tell about. */
	if (c->report_fd < 0 && !c->watch)
		c->watch_idle = true;
	call_resume(c); /* from now on what comes is dropped */
	walk_soon(c->w, true);
}

/* The client is told when every process is gone and the trace is whole: end.c. */
static void end_with(struct call *c)
{
	c->w->final = c;
	warden_end(c->w, "its command has ended");
}

/* What is not in the trace is not reported as done. */
static void say_end(struct call *c)
{
	if (!c->client)
		return;
	if (c->w->refusal.kind != ERR_NONE)
		(void)client_error(c->client, c->chan, &c->w->refusal, STAGE_SETUP);
	else
		say_exit(c);
}

static void answer(struct call *c)
{
	c->duration_us = (clock_mono_ns() - c->started_ns) / NS_PER_US;
	if (c->watch)
		watch_call_collect(c->watch);
	trace_exit(c);
	if (!c->final)
		say_end(c);
	mark_answered(c);
	if (c->final)
		end_with(c);
}

void call_say_final(struct call *c)
{
	struct warden *w = c->w;

	if (!w->final_failed)
		say_end(c);
	else if (c->client)
		(void)client_error(c->client, c->chan, &w->final_error, w->final_stage);
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
	if (c == c->w->spare) { /* before it was needed, or since it is not any more */
		call_free(c);
		return;
	}
	c->exited = true;
	c->status = status;
	c->cpu_us = cpu_us;
	c->maxrss_kb = maxrss_kb;
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
	if (c == c->w->spare) {
		call_free(c);
		return;
	}
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
	if (c->final) {
		c->w->final_failed = true;
		c->w->final_error = e;
		c->w->final_stage = stage;
		end_with(c);
		return;
	}
	if (c->client)
		(void)client_error(c->client, c->chan, &e, stage);
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
		(void)cgroup_kill_leaf(&c->w->cell.cgroup, c->group);
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
