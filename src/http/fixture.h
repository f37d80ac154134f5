/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in this process for unit tests, with a clock that only the test moves. The linker sends
 * clock_mono_ns() here (-Wl,--wrap=clock_mono_ns).
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "http/listen.h"
#include "http/parts.h"
#include "t.h"
#include "wire/http_write.h"
#include "wire/url.h"

uint64_t __wrap_clock_mono_ns(void);

static uint64_t fix_now_ns = 1000 * NS_PER_S;

uint64_t __wrap_clock_mono_ns(void)
{
	return fix_now_ns;
}

static struct loop fix_loop;
static struct http_server fix_server;
static struct http_request *fix_request; /* the last one that waits for an answer */
static unsigned fix_ended[HTTP_END_STOPPED + 1];
static unsigned fix_rooms, fix_gones, fix_body_ends;
static size_t fix_take = SIZE_MAX; /* how much data() takes at once */
static struct buf fix_got = BUF_INIT(64 << 20);

static void fix_on_body(struct http_request *r, struct str body)
{
	http_answer(r, 200, "text/plain", body);
}

static size_t fix_on_data(struct http_request *r, struct str data)
{
	size_t n = data.n < fix_take ? data.n : fix_take;

	(void)r;
	fix_take -= fix_take == SIZE_MAX ? 0 : n;
	CHECK(buf_add(&fix_got, data.p, n) == 0);
	return n;
}

static void fix_on_body_end(struct http_request *r)
{
	char text[32];

	fix_body_ends++;
	if (r->status == 101) {
		http_answer_end(r);
		return;
	}
	(void)snprintf(text, sizeof text, "%zu", fix_got.len);
	http_answer(r, 200, "text/plain", str_of(text));
}

static void fix_on_room(struct http_request *r)
{
	(void)r;
	fix_rooms++;
}

static void fix_on_gone(struct http_request *r)
{
	fix_gones++;
	if (str_is(r->path, "/gone"))
		http_request_cut(r);
}

static void fix_on_ended(struct http_request *r, enum http_end why)
{
	if (fix_request == r)
		fix_request = NULL;
	fix_ended[why]++;
}

static const struct http_handler fix_handler = {
	.body = fix_on_body,
	.data = fix_on_data,
	.body_end = fix_on_body_end,
	.room = fix_on_room,
	.ended = fix_on_ended,
};
static const struct http_handler fix_patient = {
	.room = fix_on_room,
	.gone = fix_on_gone,
	.ended = fix_on_ended,
};

static void fix_start(struct http_request *r)
{
	r->handler = &fix_handler;
	if (str_is(r->path, "/hello")) {
		http_answer(r, 200, "text/plain", STR("hello"));
	} else if (str_is(r->path, "/none")) {
		http_answer(r, 204, NULL, STR(""));
	} else if (str_is(r->path, "/echo")) {
		CHECK(http_request_buffer(r, 1 << 20) == 0);
	} else if (str_is(r->path, "/sink")) {
		CHECK(http_request_stream(r, 0, false) == 0);
	} else if (str_is(r->path, "/raw")) {
		CHECK(http_request_stream(r, 0, true) == 0);
	} else if (str_is(r->path, "/tunnel")) {
		if (http_answer_tunnel(r, STR("raw")) < 0)
			http_answer(r, 400, NULL, STR(""));
	} else if (str_is(r->path, "/evil")) {
		http_answer_header(r, "X-Evil", STR("a\r\nSet-Cookie: b"));
		http_answer(r, 200, "text/plain", STR("hello"));
	} else if (str_is(r->path, "/lost")) {
		r->handler = NULL;
	} else {
		if (str_is(r->path, "/gone") || str_is(r->path, "/patient"))
			r->handler = &fix_patient;
		fix_request = r;
	}
}

static const struct http_app fix_app = { .start = fix_start };

static void fix_tick(struct loop_timer *t);
static struct loop_timer fix_timer;
static bool fix_ticked;

static void fix_tick(struct loop_timer *t)
{
	(void)t;
	fix_ticked = true;
}

/* Everything that is ready happens. */
static void fix_turn(void)
{
	for (int i = 0; i < 8; i++) {
		fix_ticked = false;
		loop_timer_set(&fix_loop, &fix_timer, 0, fix_tick);
		CHECK(loop_run_until(&fix_loop, &fix_ticked) == 0);
	}
}

static inline void fix_wait(uint64_t ms)
{
	fix_now_ns += ms * NS_PER_MS;
	fix_turn();
}

static inline void fix_begin_with(const struct http_limits *l)
{
	CHECK(loop_init(&fix_loop) == 0);
	CHECK(http_server_init(&fix_server, &fix_loop, &fix_app, l) == 0);
}

static inline void fix_begin(void)
{
	fix_begin_with(NULL);
}

static inline void fix_end(void)
{
	http_server_done(&fix_server);
	CHECK(fix_server.memory == 0 && fix_server.bodies == 0 && fix_server.counters.conns == 0);
	CHECK(fix_server.counters.unknown == 0 && fix_server.counters.idle == 0);
	CHECK(fix_server.streams == 0 && fix_server.full == 0);
	loop_done(&fix_loop);
	buf_done(&fix_got);
}

/* A client: its end of a connection. */
static inline int fix_client(void)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(http_server_adopt(&fix_server, fds[1], NULL) == 0);
	CHECK(io_set_nonblock(fds[0], true) == 0);
	fix_turn();
	return fds[0];
}

static inline void fix_send(int fd, const char *text)
{
	size_t n = strlen(text);

	CHECK(send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n);
	fix_turn();
}

/* What the server has sent, as text; *closed if it closed. */
static inline const char *fix_read(int fd, bool *closed)
{
	static char text[4 << 20];
	size_t n = 0;
	ssize_t k;

	do {
		k = recv(fd, text + n, sizeof text - 1 - n, 0);
		if (k > 0)
			n += (size_t)k;
		fix_turn();
	} while (k > 0);
	text[n] = '\0';
	if (closed)
		*closed = k == 0 || errno == ECONNRESET;
	return text;
}

static inline int fix_status(const char *text)
{
	return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text + 9, NULL, 10) : -1;
}

static inline const char *fix_body(const char *text)
{
	const char *end = strstr(text, "\r\n\r\n");

	return end ? end + 4 : "";
}
