/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "cli/output.h"
#include "cli/session.h"
#include "sys/raw.h"

enum { CHUNK = 4096, DESTROY_S = 10, DISCARD_S = 2 }; /* answers are short */

/* A blocking reader of frames. */
struct reader {
	int fd;
	struct buf in;
	size_t taken;
};

static void reader_done(struct reader *r)
{
	fd_close(&r->fd);
	buf_done(&r->in);
}
DEFINE_AUTO(struct reader, reader_done)

static int gone(struct err *e)
{
	return err_set(e, ERR_UNAVAILABLE, "the sandbox ended before it answered");
}

/* The next frame; borrowed until the next call. */
static int next_frame(struct reader *r, struct frame *f, struct err *e)
{
	buf_shift(&r->in, r->taken);
	r->taken = 0;
	for (;;) {
		int64_t n = frame_parse(buf_str(&r->in), f);
		ssize_t got;

		if (n < 0)
			return err_set(e, ERR_FAILED, "the warden sent a malformed answer");
		if (n > 0) {
			r->taken = (size_t)n;
			return 0;
		}
		if (buf_reserve(&r->in, CHUNK) < 0)
			return err_sys(e, ENOMEM, "read an answer");
		got = read(r->fd, r->in.data + r->in.len, CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return gone(e);
		buf_grew(&r->in, (size_t)got);
	}
}

uint64_t client_number(const struct frame *f, uint16_t tag, uint64_t otherwise)
{
	struct str body = f->body;
	struct field field;
	uint64_t v;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag)
			return field_u64(field, &v) == 0 ? v : otherwise;
	return otherwise;
}

static bool text_of(const struct frame *f, uint16_t tag, char *out, size_t size)
{
	struct str body = f->body;
	struct field field;

	out[0] = '\0';
	while (field_next(&body, &field) > 0)
		if (field.tag == tag)
			return str_copy(out, size, field.value);
	return false;
}

int client_take_error(const struct frame *f, struct err *e)
{
	enum err_kind kind;
	char name[32];

	(void)text_of(f, TAG_KIND, name, sizeof name);
	kind = err_kind_of(name);
	/* An error of no kind would end the command line as if all were well. */
	(void)err_set(e, kind == ERR_NONE ? ERR_FAILED : kind, "the warden refused");
	(void)text_of(f, TAG_TEXT, e->msg, sizeof e->msg);
	(void)text_of(f, TAG_HINT, e->hint, sizeof e->hint);
	e->sys = (int)client_number(f, TAG_ERRNO, 0);
	return -1;
}

static int say_hello(int fd, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	size_t at = 0;

	if (frame_begin(&b, MSG_C_HELLO, 0, &at) < 0 ||
	    field_put_u64(&b, TAG_VERSION, PROTO_CLIENT_VERSION) < 0 || frame_end(&b, at, 0) < 0)
		return err_sys(e, ENOMEM, "say hello");
	return io_write_all(fd, b.data, b.len) < 0 ? gone(e) : 0;
}

int client_dial(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	auto_close int dir = FD_NONE;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	if (state_sandbox_open(s, id, &dir, e) < 0)
		return -1;
	/* By descriptor: the path may be longer than a socket address can be. */
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/sock", dir);
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0) {
		(void)err_set(e, ERR_UNAVAILABLE, "no warden answers for sandbox '%s': %s", id,
			      strerror(errno));
		return err_hint(e,
				"it was lost; its files are a snapshot: cay snapshots %s; remove "
				"them with: cay kill %s",
				id, id);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int client_connect(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	auto_close int fd = FD_NONE;

	if (client_dial(s, id, &fd, e) < 0 || say_hello(fd, e) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int put_request(int fd, uint8_t type, struct str body, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);

	if (frame_put(&b, type, 1, body) < 0)
		return err_sys(e, ENOMEM, "ask");
	return io_write_all(fd, b.data, b.len) < 0 ? gone(e) : 0;
}

static void reader_init(struct reader *r)
{
	*r = (struct reader){ .fd = FD_NONE, .in = BUF_INIT(LIMIT_FRAME_BODY + 2 * CHUNK) };
}

/* Connect, and send one request. */
static int ask_with(const struct state *s, const char *id, uint8_t type, struct str body,
		    struct reader *r, struct err *e)
{
	reader_init(r);
	if (client_connect(s, id, &r->fd, e) < 0)
		return -1;
	return put_request(r->fd, type, body, e);
}

static int ask(const struct state *s, const char *id, uint8_t type, struct reader *r, struct err *e)
{
	return ask_with(s, id, type, STR_NONE, r, e);
}

static int expect(struct reader *r, uint8_t type, struct frame *f, struct err *e)
{
	if (next_frame(r, f, e) < 0)
		return -1;
	if (f->type == MSG_C_ERROR)
		return client_take_error(f, e);
	return f->type == type ? 0 : err_set(e, ERR_FAILED, "the warden answered something else");
}

static void join_args(const struct frame *f, char *out, size_t size)
{
	struct str body = f->body;
	struct field field;
	size_t at = 0;

	out[0] = '\0';
	while (field_next(&body, &field) > 0 && at + 1 < size) {
		size_t n = field.value.n;

		if (field.tag != TAG_ARG)
			continue;
		if (at)
			out[at++] = ' ';
		n = n < size - at - 1 ? n : size - at - 1;
		if (n)
			memcpy(out + at, field.value.p, n);
		at += n;
		out[at] = '\0';
	}
}

int client_ps(const struct state *s, const char *id,
	      int (*fn)(void *ctx, const struct client_process *p), void *ctx, struct err *e)
{
	auto_done(reader_done) struct reader r;
	struct frame f;
	char args[4096], user[16], state[4];

	if (ask(s, id, MSG_C_PS, &r, e) < 0)
		return -1;
	for (;;) {
		struct client_process p = { .args = args, .user = user };

		if (next_frame(&r, &f, e) < 0)
			return -1;
		if (f.type == MSG_C_ERROR)
			return client_take_error(&f, e);
		if (f.type != MSG_C_PROCESS)
			return 0;
		join_args(&f, args, sizeof args);
		(void)snprintf(user, sizeof user, "%u",
			       (unsigned)client_number(&f, TAG_USER, 65534));
		(void)text_of(&f, TAG_STATE, state, sizeof state);
		p.pid = (int)client_number(&f, TAG_PID, 0);
		p.ppid = (int)client_number(&f, TAG_PPID, 0);
		p.call = (uint32_t)client_number(&f, TAG_CALL, 0);
		p.cpu_us = client_number(&f, TAG_CPU_US, 0);
		p.rss_kb = client_number(&f, TAG_RSS_KB, 0);
		p.state = state[0];
		if (fn(ctx, &p) != 0)
			return 0;
	}
}

static int expect_state(struct reader *r, struct client_state *ret, struct err *e)
{
	struct frame f;

	if (expect(r, MSG_C_STATE, &f, e) < 0)
		return -1;
	*ret = (struct client_state){
		.init_pid = (int)client_number(&f, TAG_INIT_PID, 0),
		.calls_running = (uint32_t)client_number(&f, TAG_CALLS, 0),
		.calls_total = client_number(&f, TAG_CALL, 0),
		.rss_kb = client_number(&f, TAG_RSS_KB, 0),
		.ttl_left_ms = client_number(&f, TAG_TTL_LEFT_MS, UINT64_MAX),
		.idle_left_ms = client_number(&f, TAG_IDLE_LEFT_MS, UINT64_MAX),
	};
	ret->switching = client_number(&f, TAG_SWITCHING, 0) != 0;
	(void)text_of(&f, TAG_STATE, ret->state, sizeof ret->state);
	(void)text_of(&f, TAG_LAYER, ret->top, sizeof ret->top);
	return 0;
}

int client_put_switch(struct buf *b, const struct client_switch *ask)
{
	int r = ask->seal ? field_put_c(b, TAG_SEAL, ask->seal) : 0;

	for (size_t i = 0; i < ask->nlayers && r == 0; i++)
		r = field_put_c(b, TAG_LAYER, ask->layers[i]);
	if (r == 0 && ask->force)
		r = field_put_u64(b, TAG_FORCE, 1);
	if (r == 0 && ask->alone)
		r = field_put_u64(b, TAG_CALLS, 0);
	if (r == 0 && ask->snapshot)
		r = field_put_c(b, TAG_SNAPSHOT, ask->snapshot);
	if (r == 0 && ask->name)
		r = field_put_c(b, TAG_NAME, ask->name);
	return r;
}

void client_take_switched(const struct frame *f, struct client_switched *ret)
{
	*ret = (struct client_switched){
		.result = (enum op_result)client_number(f, TAG_SEALED, 0),
		.duration_us = client_number(f, TAG_DURATION_US, 0),
		.freeze_us = client_number(f, TAG_FREEZE_US, 0),
	};
}

void client_say_soon(int fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64);

	if (frame_put(&b, MSG_C_SOON, CLIENT_SOON_CHAN, STR_NONE) == 0)
		(void)io_write_all(fd, b.data, b.len);
	(void)sched_yield(); /* or it may wait for our processor, while another one is idle */
}

int client_switch(const struct state *s, const char *id, const struct client_switch *ask,
		  struct client_switched *ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	auto_done(reader_done) struct reader r = { .fd = FD_NONE };
	struct frame f;

	if (client_put_switch(&b, ask) < 0)
		return err_sys(e, ENOMEM, "ask");
	if (ask_with(s, id, MSG_C_SWITCH, buf_str(&b), &r, e) < 0)
		return -1;
	ask->meanwhile(ask->ctx);
	if (expect(&r, MSG_C_SWITCHED, &f, e) < 0)
		return -1;
	client_take_switched(&f, ret);
	return 0;
}

int client_info(const struct state *s, const char *id, struct client_state *ret, struct err *e)
{
	auto_done(reader_done) struct reader r;

	return ask(s, id, MSG_C_INFO, &r, e) < 0 ? -1 : expect_state(&r, ret, e);
}

int client_order(const struct state *s, const char *id, enum client_order order, uint64_t ttl_ms,
		 struct client_state *ret, struct err *e)
{
	static const uint8_t types[] = { MSG_C_PAUSE, MSG_C_RESUME, MSG_C_EXTEND };
	auto_done(reader_done) struct reader r = { .fd = FD_NONE,
						   .in = BUF_INIT(LIMIT_FRAME_BODY + 2 * CHUNK) };
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	size_t at = 0;

	if (client_connect(s, id, &r.fd, e) < 0)
		return -1;
	if (frame_begin(&b, types[order], 1, &at) < 0 ||
	    field_put_u64(&b, TAG_TTL_MS, ttl_ms) < 0 || frame_end(&b, at, 0) < 0)
		return err_sys(e, ENOMEM, "ask");
	return io_write_all(r.fd, b.data, b.len) < 0 ? gone(e) : expect_state(&r, ret, e);
}

/* The warden holds the sandbox's lock until it is really gone. */
static int await_death(const struct state *s, const char *id, struct err *e)
{
	for (int i = 0; i < 5000; i++) {
		if (!state_is_alive(s, id))
			return 0;
		(void)poll(NULL, 0, 1);
	}
	return err_set(e, ERR_TIMEOUT, "the warden of sandbox '%s' does not end", id);
}

/* Whoever listens on the other end. What was in its sandbox ends with it. */
static void kill_warden(int sock)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof peer;
	auto_close int pidfd = FD_NONE;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0)
		return;
	pidfd = raw_pidfd_open(peer.pid);
	if (pidfd >= 0)
		(void)raw_pidfd_signal(pidfd, SIGKILL);
}

/* The wait for the answer to one question. */
static int be_patient(int sock, int seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	return setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

int client_destroy(const struct state *s, const char *id, const char *reason, struct err *e)
{
	auto_done(reader_done) struct reader r;
	struct frame f;

	(void)reason;
	reader_init(&r);
	if (client_dial(s, id, &r.fd, e) < 0)
		return -1;
	(void)be_patient(r.fd, DESTROY_S);
	/* It answers, or it is gone, or it never will, as where it has no room for one more client,
	 * or speaks another version: in each case it has ended when its lock is free. */
	if ((say_hello(r.fd, e) < 0 || put_request(r.fd, MSG_C_DESTROY, STR_NONE, e) < 0 ||
	     next_frame(&r, &f, e) < 0 || f.type == MSG_C_ERROR) &&
	    state_is_alive(s, id))
		kill_warden(r.fd);
	return await_death(s, id, e);
}

int client_discard(const struct state *s, const char *id, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	auto_done(reader_done) struct reader r = { .fd = FD_NONE };
	struct frame f;

	if (field_put_c(&b, TAG_WARM, "") < 0)
		return err_sys(e, ENOMEM, "ask");
	if (ask_with(s, id, MSG_C_DESTROY, buf_str(&b), &r, e) < 0 ||
	    be_patient(r.fd, DISCARD_S) < 0 || expect(&r, MSG_C_DESTROYED, &f, e) < 0)
		return -1;
	return await_death(s, id, e);
}

int client_settle(const struct state *s, const char *id, uint64_t *ret_seq, char ret_hash[65],
		  struct err *e)
{
	auto_done(reader_done) struct reader r;
	struct frame f;

	if (ask(s, id, MSG_C_SETTLE, &r, e) < 0 || expect(&r, MSG_C_SETTLED, &f, e) < 0)
		return -1;
	*ret_seq = client_number(&f, TAG_SEQ, 0);
	(void)text_of(&f, TAG_HASH, ret_hash, 65);
	return 0;
}

int client_file_op(const struct state *s, const char *id, enum call_op op, const char *path,
		   uint64_t mode, const char *user, struct client_io io, struct buf *ret_stderr,
		   int *ret_exit, struct err *e)
{
	auto_done(buf_done) struct buf ask_body = BUF_INIT(LIMIT_FRAME_BODY);
	struct session se = { .in_fd = io.in_fd,
			      .out_fd = io.out_fd,
			      .err_fd = FD_NONE,
			      .err_text = ret_stderr,
			      .request = &ask_body };
	struct session_result res;
	auto_close int fd = FD_NONE;
	int r;

	if (field_put_u64(&ask_body, TAG_OP, op) < 0 ||
	    field_put_c(&ask_body, TAG_PATH, path) < 0 ||
	    field_put_u64(&ask_body, TAG_MODE, mode) < 0 ||
	    (user && field_put_c(&ask_body, TAG_USER, user) < 0))
		return err_sys(e, ENOMEM, "ask for a file");
	if (client_connect(s, id, &fd, e) < 0)
		return -1;
	se.warden_fd = fd;
	r = session_run(&se, &res, e);
	buf_done(&res.denied);
	if (r < 0)
		return -1;
	*ret_exit = res.code;
	return 0;
}

void client_print_warnings(const struct frame *f)
{
	struct str body = f->body;
	struct field field;

	while (field_next(&body, &field) > 0) {
		auto_free char *text = NULL;

		if (field.tag != TAG_WARNING || !field.value.n)
			continue;
		text = out_safe_dup(field.value);
		fprintf(stderr, "cay: warning: %s\n", text ? text : "a limit is not enforced");
	}
}
