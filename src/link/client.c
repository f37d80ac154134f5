/* SPDX-License-Identifier: Apache-2.0 */
#include "link/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "sys/process/raw.h"

enum { CHUNK = 4096, DESTROY_S = 10 }; /* answers are short */

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
	(void)text_of(f, TAG_CODE, e->code, sizeof e->code);
	(void)text_of(f, TAG_ABOUT, e->about, sizeof e->about);
	e->sys = (int)client_number(f, TAG_ERRNO, 0);
	return -1;
}

int client_put_hello(struct buf *b)
{
	size_t at = 0;
	int r = frame_begin(b, MSG_C_HELLO, 0, &at);

	if (r == 0)
		r = field_put_u64(b, TAG_VERSION, PROTO_CLIENT_OLDEST);
	return r < 0 ? r : frame_end(b, at, 0);
}

static int say_hello(int fd, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	if (client_put_hello(&b) < 0)
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
		return err_code(e, "sandbox.lost", id);
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

void client_take_state(const struct frame *f, struct client_state *ret)
{
	*ret = (struct client_state){
		.init_pid = (int)client_number(f, TAG_INIT_PID, 0),
		.calls_running = (uint32_t)client_number(f, TAG_CALLS, 0),
		.calls_total = client_number(f, TAG_CALL, 0),
		.rss_kb = client_number(f, TAG_RSS_KB, 0),
		.ttl_left_ms = client_number(f, TAG_TTL_LEFT_MS, UINT64_MAX),
		.idle_left_ms = client_number(f, TAG_IDLE_LEFT_MS, UINT64_MAX),
		.switching = client_number(f, TAG_SWITCHING, 0) != 0,
	};
	(void)text_of(f, TAG_STATE, ret->state, sizeof ret->state);
	(void)text_of(f, TAG_LAYER, ret->top, sizeof ret->top);
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

/*
 * A pidfd of the process that listens on the other end. Before Linux 6.5 the kernel tells only its
 * pid, which may be another process's by the time that it is opened: so the lock must be held after
 * that, by which the warden was alive all the time and had its pid.
 */
static int open_peer(const struct state *s, const char *id, int sock)
{
	enum { PEERPIDFD = 77 }; /* SO_PEERPIDFD, which old headers lack */
	struct ucred peer = { 0 };
	socklen_t n = sizeof(int);
	int pidfd = FD_NONE;

	if (getsockopt(sock, SOL_SOCKET, PEERPIDFD, &pidfd, &n) == 0)
		return pidfd;
	n = sizeof peer;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0)
		return FD_NONE;
	pidfd = raw_pidfd_open(peer.pid);
	if (pidfd >= 0 && !state_is_alive(s, id))
		fd_close(&pidfd);
	return pidfd;
}

/* What was in its sandbox ends with it. */
static void kill_warden(const struct state *s, const char *id, int sock)
{
	auto_close int pidfd = open_peer(s, id, sock);

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
		kill_warden(s, id, r.fd);
	return await_death(s, id, e);
}

bool client_next_warning(struct str *body, struct str *ret)
{
	struct field field;

	while (field_next(body, &field) > 0)
		if (field.tag == TAG_WARNING && field.value.n) {
			*ret = field.value;
			return true;
		}
	return false;
}
