/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things on HTTP connections: an input is a script of what clients, servers behind the
 * proxy, the clock and the app do to one server. Every byte string is a script. After each step the
 * loop turns and all counts must agree. What a client reads must be well-formed answers.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "fuzz.h"
#include "http/listen.h"
#include "http/parts.h"
#include "http/proxy.h"
#include "http/ws.h"

enum { CLIENTS = 4, REQUESTS = 16, STEPS = 96, TURNS = 3, BLOCK = 256 * 1024 };

uint64_t __wrap_clock_mono_ns(void);

/* What a client has read so far. */
struct reading {
	struct buf in;
	struct http_body body;
	bool in_body, unchecked; /* behind a 101, or an answer that closes */
};

struct client {
	int fd;
	struct reading reading;
};

static struct {
	uint64_t now_ns;
	struct loop loop;
	struct http_server server;
	struct client clients[CLIENTS];
	struct http_request *waiting[REQUESTS];
	struct http_ws *sockets[REQUESTS];
	int upstream[CLIENTS];
	size_t take;
	unsigned started, ended;
} w;

static char block[BLOCK], spill[BLOCK]; /* bytes to send; what is read */

uint64_t __wrap_clock_mono_ns(void)
{
	return w.now_ns;
}

struct script {
	const uint8_t *p, *end;
};

static unsigned next(struct script *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

#define HOST " HTTP/1.1\r\nHost: a\r\n"

static const struct str said[] = {
	STR("GET /a" HOST "\r\n"),
	STR("GET /w" HOST "\r\n"),
	STR("GET /w" HOST "\r\nGET /a" HOST "\r\n"),
	STR("HEAD /w" HOST "\r\n"),
	STR("GET /w" HOST "Connection: close\r\n\r\n"),
	STR("GET /w HTTP/1.0\r\n\r\n"),
	STR("GET /g" HOST "Accept-Encoding: gzip\r\n\r\n"),
	STR("POST /b" HOST "Content-Length: 5\r\n\r\n"),
	STR("POST /b" HOST "Content-Length: 5000\r\n\r\n"),
	STR("POST /b" HOST "Transfer-Encoding: chunked\r\n\r\n"),
	STR("POST /s" HOST "Transfer-Encoding: chunked\r\n\r\n"),
	STR("POST /s" HOST "Content-Length: 100000\r\n\r\n"),
	STR("POST /s" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
	STR("POST /w" HOST "Content-Length: 5\r\n\r\nhel"),
	STR("POST /w" HOST "Content-Length: 100\r\n\r\n"),
	STR("POST /b" HOST "Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n"),
	STR("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\5\0\0\0"),
	STR("hello"),
	STR("5\r\nhello\r\n"),
	STR("0\r\n\r\n"),
	STR("GET /w" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
	STR("\x81\x82"
	    "0000AA"),
	STR("\x88\x80"
	    "0000"),
	STR("\x8a\x80"
	    "0000"),
	STR("GET "),
	STR("\r\n"),
	STR("bad\r\n\r\n"),
	STR("POST /b" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
};

static const struct str upstream_said[] = {
	STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
	STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	STR("HTTP/1.1 200 OK\r\n\r\n"),
	STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
	STR("HTTP/1.1 100 Continue\r\n\r\n"),
	STR("HTTP/1.1 204 No Content\r\n\r\n"),
	STR("hello"),
	STR("5\r\nhello\r\n"),
	STR("0\r\n\r\n"),
	STR("bad"),
};

static const uint32_t sizes[] = { 1, 5, 100, 4096, 5000, 16384, 65536, 262144 };
static const uint64_t times_ms[] = { 1, 100, 1000, 4999, 15001, 30001, 60001, 650001 };

/* --- the app --- */

static void forget(struct http_request *r)
{
	for (int i = 0; i < REQUESTS; i++)
		if (w.waiting[i] == r)
			w.waiting[i] = NULL;
}

static void remember(struct http_request *r)
{
	for (int i = 0; i < REQUESTS; i++)
		if (!w.waiting[i]) {
			w.waiting[i] = r;
			return;
		}
}

static void on_body(struct http_request *r, struct str body)
{
	http_answer(r, 200, "application/json", body);
}

static size_t on_data(struct http_request *r, struct str data)
{
	FUZZ_CHECK(data.n > 0);
	if (w.take == 13)
		http_answer(r, 507, NULL, STR("full"));
	if (w.take == 14)
		http_request_cut(r);
	return data.n < w.take ? data.n : w.take;
}

static void on_body_end(struct http_request *r)
{
	if (r->status == 101)
		http_answer_end(r);
	else if (r->status == 0)
		http_answer(r, 200, NULL, STR("done"));
}

static void on_room(struct http_request *r)
{
	FUZZ_CHECK(!http_answer_is_full(r));
	if (w.take & 1)
		(void)http_answer_write(r, (struct str){ block, 1000 });
}

static void on_gone(struct http_request *r)
{
	if (w.take & 2)
		http_request_cut(r);
}

static void on_ended(struct http_request *r, enum http_end why)
{
	FUZZ_CHECK(why <= HTTP_END_STOPPED);
	(void)http_request_header(r, "host");
	forget(r);
	w.ended++;
}

static const struct http_handler plain = {
	.body = on_body,
	.data = on_data,
	.body_end = on_body_end,
	.room = on_room,
	.ended = on_ended,
};
static const struct http_handler patient = { .gone = on_gone, .ended = on_ended, .room = on_room };

static void on_start(struct http_request *r)
{
	char kind = r->path.n > 1 ? r->path.p[1] : 'a';

	w.started++;
	r->handler = kind == 'g' ? &patient : &plain;
	if (kind == 'a')
		http_answer(r, 200, "text/plain", STR("hello"));
	else if (kind == 'b')
		FUZZ_CHECK(http_request_buffer(r, 6000) == 0);
	else if (kind == 's')
		FUZZ_CHECK(http_request_stream(r, 0, false) == 0);
	if (kind != 'a')
		remember(r);
}

static const struct http_app app = { .start = on_start };

static void on_ws_message(struct http_ws *s, bool is_text, struct str data)
{
	(void)http_ws_send(s, is_text, data);
}

static void on_ws_ended(struct http_ws *s, int code)
{
	(void)code;
	for (int i = 0; i < REQUESTS; i++)
		if (w.sockets[i] == s)
			w.sockets[i] = NULL;
	w.ended++;
}

static const struct http_ws_handler ws_handler = { .message = on_ws_message, .ended = on_ws_ended };

static void accept_ws(struct http_request *r, unsigned slot)
{
	struct http_ws *s = w.sockets[slot] ? NULL : http_ws_accept(r, STR(""), &ws_handler, NULL);

	if (!s)
		return;
	forget(r);
	w.sockets[slot] = s;
}

static void on_proxy_ended(void *user, int fd)
{
	(void)user;
	fd_close(&fd);
	w.ended++;
}

static void start_proxy(struct http_request *r, unsigned slot)
{
	struct http_proxy_options o = { .ended = on_proxy_ended, .forwarded_proto = "http" };
	int fds[2];

	slot %= CLIENTS;
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	fd_close(&w.upstream[slot]);
	w.upstream[slot] = fds[0];
	if (r->status == 0 && http_proxy_start(r, fds[1], &o) == 0)
		forget(r);
	else if (r->status)
		fd_close(&fds[1]);
}

static void do_answer(struct http_request *r, unsigned what, uint32_t n)
{
	auto_done(buf_done) struct buf b = BUF_INIT(BLOCK);

	switch (what % 12) {
	case 0:
		http_answer_header(r, "X-A", STR("b"));
		http_answer(r, 201, "text/plain", (struct str){ block, n });
		break;
	case 1:
		FUZZ_CHECK(buf_add(&b, block, n) == 0);
		http_answer_buf(r, 200, "application/json", &b);
		break;
	case 2:
		(void)http_answer_begin(r, 200, NULL, HTTP_LENGTH_UNKNOWN);
		break;
	case 3:
		(void)http_answer_begin(r, 206, NULL, n);
		break;
	case 4:
		(void)http_answer_write(r, (struct str){ block, n });
		break;
	case 5:
		http_answer_end(r);
		break;
	case 6:
		http_request_cut(r);
		break;
	case 7:
		(void)http_request_buffer(r, n);
		break;
	case 8:
		(void)http_request_stream(r, n > 100 ? 0 : n, n & 1);
		break;
	case 9:
		http_request_resume(r);
		break;
	case 10:
		(void)http_answer_tunnel(r, STR("x"));
		break;
	default:
		(void)http_answer_event(r, STR("e"), STR(""), STR("data"));
	}
}

static void app_step(struct script *s)
{
	unsigned slot = next(s) % REQUESTS, what = next(s);
	uint32_t n = sizes[what / 16 % (sizeof sizes / sizeof sizes[0])];

	w.take = what % 32 < 16 ? SIZE_MAX : what % 16;
	if (w.sockets[slot] && what % 4 == 0)
		http_ws_hold(w.sockets[slot], what & 16);
	else if (w.sockets[slot] && what % 4 == 1)
		http_ws_close(w.sockets[slot], WS_NORMAL, STR("x"));
	else if (w.sockets[slot])
		(void)http_ws_send(w.sockets[slot], false, (struct str){ block, n });
	else if (w.waiting[slot] && what % 16 == 12)
		accept_ws(w.waiting[slot], slot);
	else if (w.waiting[slot] && what % 16 == 13)
		start_proxy(w.waiting[slot], slot);
	else if (w.waiting[slot])
		do_answer(w.waiting[slot], what, n);
}

/* --- clients --- */

/* Answers must be well-formed, in any state. */
static void check_answers(struct reading *g)
{
	while (!g->unchecked && g->in.len) {
		struct str in = buf_str(&g->in), data;
		struct http_head h;
		int64_t n;

		if (g->in_body) {
			int r = http_body_next(&g->body, &in, &data);

			FUZZ_CHECK(r >= 0);
			g->in_body = r != HTTP_END;
			buf_shift(&g->in, g->in.len - in.n);
			if (r == HTTP_MORE)
				return;
			continue;
		}
		n = http_response_parse(in, STR("GET"), &h);
		FUZZ_CHECK(n >= 0);
		if (n == 0)
			return;
		buf_shift(&g->in, (size_t)n);
		http_body_init(&g->body, &h);
		g->in_body = h.status >= 200;
		/* An answer to HEAD looks as if a body followed: such clients are not checked. */
		g->unchecked = h.status == 101 || !h.keep_alive;
	}
}

static void client_open(struct client *c)
{
	int fds[2], small = 4096;

	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	fd_close(&c->fd);
	buf_done(&c->reading.in);
	c->fd = fds[0];
	c->reading = (struct reading){ .in = BUF_INIT(4 << 20) };
	FUZZ_CHECK(http_server_adopt(&w.server, fds[1], NULL) == 0);
}

static void client_read(struct client *c, size_t most)
{
	ssize_t n = c->fd < 0 ? -1 : recv(c->fd, spill, most < BLOCK ? most : BLOCK, MSG_DONTWAIT);

	if (n <= 0 || c->reading.unchecked)
		return;
	FUZZ_CHECK(buf_add(&c->reading.in, spill, (size_t)n) == 0);
	check_answers(&c->reading);
}

static void say(int fd, struct str text)
{
	if (fd >= 0)
		(void)!send(fd, text.p, text.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void client_step(struct script *s, unsigned what)
{
	struct client *c = &w.clients[next(s) % CLIENTS];
	unsigned n = next(s);

	switch (what) {
	case 0:
		client_open(c);
		break;
	case 1:
	case 2: {
		struct str text = said[n % (sizeof said / sizeof said[0])];

		if (str_starts(text, STR("HEAD")))
			c->reading.unchecked = true;
		say(c->fd, text);
		break;
	}
	case 3:
		say(c->fd, (struct str){ block, sizes[n % 8] });
		break;
	case 4:
		client_read(c, sizes[n % 8]);
		break;
	default:
		if (n % 2 && c->fd >= 0)
			(void)shutdown(c->fd, SHUT_WR);
		else
			fd_close(&c->fd);
	}
}

static void upstream_step(struct script *s)
{
	unsigned slot = next(s) % CLIENTS, n = next(s);
	int *fd = &w.upstream[slot];

	if (n % 8 == 7)
		fd_close(fd);
	else if (n % 8 == 6 && *fd >= 0)
		(void)!recv(*fd, spill, BLOCK, MSG_DONTWAIT);
	else if (n % 8 == 5)
		say(*fd, (struct str){ block, sizes[n / 8 % 8] });
	else
		say(*fd, upstream_said[n % (sizeof upstream_said / sizeof upstream_said[0])]);
}

/* --- the world --- */

static bool ticked;

static void on_tick(struct loop_timer *t)
{
	(void)t;
	ticked = true;
}

static void turn(void)
{
	static struct loop_timer tick;

	for (int i = 0; i < TURNS; i++) {
		ticked = false;
		loop_timer_set(&w.loop, &tick, 0, on_tick);
		FUZZ_CHECK(loop_run_until(&w.loop, &ticked) == 0);
	}
}

/* Every sum that the server keeps is what its connections hold. */
static void check_world(void)
{
	const struct http_server *s = &w.server;
	uint64_t memory = 0, bodies = 0;
	unsigned conns = 0, idle = 0, full = 0, streams = 0;

	for (const struct http_conn *c = s->all; c; c = c->next) {
		FUZZ_CHECK(c->state == HTTP_CLOSED || (c->state == HTTP_ACTIVE) == (c->x != NULL));
		FUZZ_CHECK(c->taken <= c->in.len && !c->entered);
		FUZZ_CHECK(c->state == HTTP_CLOSED || c->queued || c->timer.at_ns ||
			   http_conn_deadline(c) == 0);
		memory += c->charged;
		conns++;
		idle += c->is_idle;
		bodies += c->x ? c->x->counted : 0;
		full += c->x && c->x->full_in;
		streams += c->x && c->x->window;
	}
	FUZZ_CHECK(!s->work_first || s->kick.at_ns);
	FUZZ_CHECK(memory == s->memory && bodies == s->bodies && conns == s->counters.conns);
	FUZZ_CHECK(idle == s->counters.idle && full == s->full && streams == s->streams);
	FUZZ_CHECK(bodies <= s->limits.bodies + LIMIT_HTTP_IN);
}

static void world_begin(void)
{
	struct http_limits limits = { .bodies = 6000, .conns = 8 };

	memset(&w, 0, sizeof w);
	if (block[0] == 0)
		memset(block, 'x', sizeof block);
	w.now_ns = 1000 * NS_PER_S;
	w.take = SIZE_MAX;
	for (int i = 0; i < CLIENTS; i++) {
		w.clients[i] = (struct client){ .fd = FD_NONE };
		w.upstream[i] = FD_NONE;
	}
	FUZZ_CHECK(loop_init(&w.loop) == 0);
	FUZZ_CHECK(http_server_init(&w.server, &w.loop, &app, &limits) == 0);
}

static void world_end(bool politely)
{
	if (politely) { /* nobody is left: everything must end by itself */
		for (int i = 0; i < CLIENTS; i++) {
			fd_close(&w.clients[i].fd);
			fd_close(&w.upstream[i]);
		}
		turn();
		w.now_ns += 3600 * NS_PER_S;
		turn();
		turn();
		FUZZ_CHECK(w.server.counters.conns == 0);
	}
	http_server_done(&w.server);
	FUZZ_CHECK(w.started == w.ended);
	FUZZ_CHECK(w.server.memory == 0 && w.server.bodies == 0 && w.server.counters.conns == 0);
	FUZZ_CHECK(w.server.streams == 0 && w.server.full == 0);
	for (int i = 0; i < CLIENTS; i++) {
		fd_close(&w.clients[i].fd);
		fd_close(&w.upstream[i]);
		buf_done(&w.clients[i].reading.in);
	}
	loop_done(&w.loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = { data, data + size };

	world_begin();
	for (int i = 0; i < STEPS && s.p < s.end; i++) {
		unsigned what = next(&s) % 10;

		if (what < 6) {
			client_step(&s, what);
		} else if (what < 8) {
			app_step(&s);
		} else if (what == 8) {
			upstream_step(&s);
		} else {
			unsigned n = next(&s);

			w.now_ns += times_ms[n % 8] * NS_PER_MS;
			if (n == 255)
				http_server_drain(&w.server);
		}
		turn();
		check_world();
	}
	world_end(size % 2);
	return 0;
}
