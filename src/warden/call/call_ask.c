/* SPDX-License-Identifier: Apache-2.0 */
/* A client's request in MSG_C_EXEC: checked once, then sent to init and traced. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "sys/files/prefetch.h"
#include "warden/call/call.h"
#include "warden/features.h"

/* A hundred years: a longer time would overflow the clock in nanoseconds. */
#define TIMEOUT_MAX_MS (100ull * 365 * 24 * 3600 * 1000)

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "bad request: %s", what);
}

/* Numbers of client protocol 3. */
static int take_number_3(struct ask *a, uint16_t tag, uint64_t v)
{
	if (tag == TAG_WINDOW) {
		a->has_window = true;
		a->window = v < LIMIT_WINDOW ? v : LIMIT_WINDOW;
	} else if (tag == TAG_DETACHED) {
		a->detached |= v != 0;
	} else if (tag == TAG_IDEMPOTENT) {
		a->idempotent = v != 0;
		a->detached |= v != 0;
	} else if (tag == TAG_RETAIN) {
		a->retain = v > LIMIT_RETAIN	     ? LIMIT_RETAIN
			    : v < LIMIT_RETAIN_LEAST ? LIMIT_RETAIN_LEAST
						     : v;
	} else if (tag == TAG_OFFSET) {
		a->offset = v;
	} else if (tag == TAG_LENGTH) {
		a->has_length = true;
		a->length = v;
	}
	return 0;
}

static int take_number(struct ask *a, struct field f, struct err *e)
{
	uint64_t v;

	if (field_u64(f, &v) < 0)
		return bad(e, "a number is not eight bytes");
	switch (f.tag) {
	case TAG_OP:
		if (v > CALL_WATCH)
			return bad(e, "unknown operation");
		a->op = (enum call_op)v;
		break;
	case TAG_TTY:
		a->tty = v != 0;
		break;
	case TAG_ROWS:
		a->rows = v & 0xffff;
		break;
	case TAG_COLS:
		a->cols = v & 0xffff;
		break;
	case TAG_TIMEOUT_MS:
		if (v > TIMEOUT_MAX_MS)
			return bad(e, "timeout too long");
		a->timeout_ms = v;
		break;
	case TAG_MODE:
		a->mode = v & 0777;
		break;
	case TAG_FINAL:
		a->final = v != 0;
		break;
	case TAG_CALL_MEMORY:
		a->call_memory = v;
		break;
	case TAG_BEST_EFFORT:
		a->best_effort = v != 0;
		break;
	default:
		return take_number_3(a, f.tag, v);
	}
	return 0;
}

static bool is_text(uint16_t tag)
{
	return tag == TAG_ARG || tag == TAG_ENV || tag == TAG_LABEL || tag == TAG_CWD ||
	       tag == TAG_USER || tag == TAG_PATH || tag == TAG_CALL_ID;
}

static int take_field(struct ask *a, struct field f, int *nenv, struct err *e)
{
	if (is_text(f.tag) && !str_is_text(f.value))
		return bad(e, "text holds a NUL byte");
	switch (f.tag) {
	case TAG_ARG:
		return ++a->argc > LIMIT_ARGS ? bad(e, "too many arguments") : 0;
	case TAG_ENV:
		return ++*nenv > LIMIT_ENV ? bad(e, "too many variables") : 0;
	case TAG_LABEL:
		return ++a->nlabels > LIMIT_LABELS || f.value.n > LIMIT_LABEL
			       ? bad(e, "too many labels, or one too long")
			       : 0;
	case TAG_CWD:
		a->cwd = f.value;
		return f.value.n >= LIMIT_PATH ? bad(e, "working directory too long") : 0;
	case TAG_USER:
		a->user = f.value;
		return f.value.n > LIMIT_NAME ? bad(e, "user name too long") : 0;
	case TAG_PATH:
		a->path = f.value;
		return f.value.n >= LIMIT_PATH ? bad(e, "path too long") : 0;
	case TAG_CALL_ID:
		a->call_id = f.value;
		return f.value.n > LIMIT_NAME ? bad(e, "call id too long") : 0;
	case TAG_OP:
	case TAG_TTY:
	case TAG_ROWS:
	case TAG_COLS:
	case TAG_TIMEOUT_MS:
	case TAG_MODE:
	case TAG_FINAL:
	case TAG_CALL_MEMORY:
	case TAG_BEST_EFFORT:
	case TAG_WINDOW:
	case TAG_DETACHED:
	case TAG_IDEMPOTENT:
	case TAG_RETAIN:
	case TAG_OFFSET:
	case TAG_LENGTH:
		return take_number(a, f, e);
	default:
		return 0;
	}
}

int ask_parse(struct ask *a, struct str body, struct err *e)
{
	struct field f;
	int nenv = 0, r;

	*a = (struct ask){ .body = body, .mode = 0644, .retain = LIMIT_RETAIN };
	while ((r = field_next(&body, &f)) > 0)
		if (take_field(a, f, &nenv, e) < 0)
			return -1;
	if (r < 0)
		return bad(e, "malformed fields");
	if (a->op != CALL_EXEC && a->path.n == 0)
		return bad(e, "a file operation without a path");
	if (a->idempotent && !a->call_id.n)
		return bad(e, "an idempotent call without an id");
	if (a->detached && a->final)
		return bad(e, "a detached call cannot end the sandbox");
	return 0;
}

/* The call's own environment goes first: init uses the first of two equal names. */
static int put_env(struct buf *out, const struct ask *a, const struct call *c)
{
	const struct defaults *d = &c->w->defaults;
	struct str body = a->body;
	struct field f;
	char text[64];
	int r = 0;

	while (r == 0 && field_next(&body, &f) > 0)
		if (f.tag == TAG_ENV)
			r = field_put(out, TAG_ENV, f.value);
	for (int i = 0; i < d->nenv && r == 0; i++)
		r = field_put_c(out, TAG_ENV, d->env[i]);
	(void)snprintf(text, sizeof text, "CAY_SANDBOX=%s", c->w->spec.id);
	if (r == 0)
		r = field_put_c(out, TAG_ENV, text);
	(void)snprintf(text, sizeof text, "CAY_CALL=%u", c->id);
	return r < 0 ? r : field_put_c(out, TAG_ENV, text);
}

static int put_args(struct buf *out, const struct ask *a)
{
	struct str body = a->body;
	struct field f;
	int r = 0;

	while (r == 0 && field_next(&body, &f) > 0)
		if (f.tag == TAG_ARG)
			r = field_put(out, TAG_ARG, f.value);
	return r;
}

/* Limits of every process of the command; init sets them as rlimits. */
static int put_limits(struct buf *out, const struct warden *w)
{
	const struct cell_limits *l = &w->spec.limits;
	int r = 0;

	if (l->files)
		r = field_put_u64(out, TAG_FILES, l->files);
	/* With a quota, a write fails with EDQUOT; this limit would send SIGXFSZ. */
	if (r == 0 && l->disk && !w->cell->has_quota)
		r = field_put_u64(out, TAG_DISK, l->disk);
	if (r == 0 && l->memory)
		r = field_put_u64(out, TAG_MEMORY, l->memory);
	if (r == 0 && w->cell->nproc)
		r = field_put_u64(out, TAG_PIDS, w->cell->nproc);
	return r;
}

static int put_run(struct buf *out, const struct ask *a, const struct call *c, uint64_t roles)
{
	const struct defaults *d = &c->w->defaults;
	struct str cwd = a->cwd.n ? a->cwd : str_of(d->cwd);
	struct str user = a->user.n ? a->user : str_of(d->user);
	int r = field_put_u64(out, TAG_OP, a->op);

	if (r == 0)
		r = field_put_u64(out, TAG_TTY, a->tty);
	if (r == 0)
		r = field_put_u64(out, TAG_MODE, a->mode);
	if (r == 0)
		r = field_put_u64(out, TAG_PROFILE, c->w->profile);
	if (r == 0)
		r = field_put_u64(out, TAG_FDS, roles);
	if (r == 0)
		r = field_put_u64(out, TAG_TRACE, c->w->trace_level);
	if (r == 0 && cwd.n)
		r = field_put(out, TAG_CWD, cwd);
	if (r == 0 && user.n)
		r = field_put(out, TAG_USER, user);
	if (r == 0 && a->path.n)
		r = field_put(out, TAG_PATH, a->path);
	if (r == 0 && a->offset)
		r = field_put_u64(out, TAG_OFFSET, a->offset);
	if (r == 0 && a->has_length)
		r = field_put_u64(out, TAG_LENGTH, a->length);
	if (r == 0)
		r = put_limits(out, c->w);
	if (r == 0)
		r = put_args(out, a);
	return r < 0 ? r : put_env(out, a, c);
}

/* The parts that are the same for every command, for a spare child. */
static int put_stand_by(struct buf *out, const struct call *c, uint64_t roles)
{
	const struct warden *w = c->w;
	int r = field_put_u64(out, TAG_PROFILE, w->profile);

	if (r == 0)
		r = field_put_u64(out, TAG_FDS, roles);
	if (r == 0)
		r = field_put_u64(out, TAG_TRACE, w->trace_level);
	if (r == 0 && w->defaults.user)
		r = field_put_c(out, TAG_USER, w->defaults.user);
	return r < 0 ? r : put_limits(out, w);
}

void ask_prefetch(const struct ask *a, const struct warden *w)
{
	struct str body = a->body;
	struct field f;

	while (field_next(&body, &f) > 0)
		if (f.tag == TAG_ARG) {
			prefetch_program(warden_root(w), f.value);
			break;
		}
	prefetch_usual(warden_root(w));
}

int ask_order(const struct ask *a, const struct call *c, struct buf *out)
{
	const uint64_t stdio = 1u << FD_STDIN | 1u << FD_STDOUT | 1u << FD_STDERR;
	size_t at = 0;
	int r = frame_begin(out, MSG_RUN, c->job, &at);

	if (r == 0)
		r = put_run(out, a, c, stdio);
	return r < 0 ? r : frame_end(out, at, 0);
}

int ask_send(const struct ask *a, struct call *c, int fds[FD_ROLES])
{
	struct conn *init = &c->w->init;
	int parcel[FD_ROLES], n = 0, r;
	uint64_t roles = 0;
	size_t at = 0;

	for (int role = 0; role < FD_ROLES; role++) {
		if (fds[role] < 0)
			continue;
		roles |= 1u << role;
		parcel[n++] = TAKE_FD(fds[role]);
	}
	r = conn_begin(init, a ? MSG_RUN : MSG_STAND_BY, c->job, &at);
	if (r == 0) {
		r = a ? put_run(&init->out, a, c, roles) : put_stand_by(&init->out, c, roles);
		if (r < 0)
			conn_cancel(init, at);
	}
	if (r < 0) {
		for (int i = 0; i < n; i++)
			fd_close(&parcel[i]);
		return r;
	}
	return conn_end(init, at, parcel, n);
}

static const char *op_name(enum call_op op)
{
	static const char *const names[] = {
		[CALL_EXEC] = "exec",
		[CALL_READ_FILE] = "read_file",
		[CALL_WRITE_FILE] = "write_file",
		[CALL_READ_TREE] = "read_tree",
		[CALL_WRITE_TREE] = "write_tree",
		[CALL_LIST] = "list",
		[CALL_WATCH] = "watch",
	};

	return names[op];
}

static void trace_list(const struct ask *a, struct trace *t, uint16_t tag, const char *key)
{
	struct str body = a->body;
	struct field f;
	size_t bytes = 0;

	trace_array(t, key);
	while (field_next(&body, &f) > 0) {
		if (f.tag != tag)
			continue;
		bytes += f.value.n;
		if (bytes > LIMIT_TRACE_ARGV)
			break;
		trace_item(t, f.value);
	}
	trace_array_end(t);
	if (bytes > LIMIT_TRACE_ARGV)
		trace_bool(t, "cut", true);
}

void ask_trace(const struct ask *a, struct call *c)
{
	struct warden *w = c->w;
	struct trace *t = &w->trace;
	struct str cwd = a->cwd.n ? a->cwd : str_of(w->defaults.cwd);
	struct str user = a->user.n ? a->user : str_of(w->defaults.user);

	c->event = trace_begin(t, "call.start", c->id, w->created_event);
	if (a->op != CALL_EXEC) {
		trace_text(t, "op", str_of(op_name(a->op)));
		trace_text(t, "path", a->path);
	} else {
		trace_list(a, t, TAG_ARG, "argv");
	}
	if (cwd.n)
		trace_text(t, "cwd", cwd);
	if (user.n)
		trace_text(t, "user", user);
	if (a->tty)
		trace_bool(t, "tty", true);
	if (a->detached)
		trace_bool(t, "detached", true);
	if (a->call_id.n)
		trace_text(t, "call_id", a->call_id);
	if (a->nlabels)
		trace_list(a, t, TAG_LABEL, "labels");
	if (a->timeout_ms)
		trace_num(t, "timeout_ms", (int64_t)a->timeout_ms);
	if (c->memory)
		trace_num(t, "memory", (int64_t)c->memory);
}
