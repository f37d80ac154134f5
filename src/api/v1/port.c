/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET …/ports/{port}/connect: one connection to a port of the sandbox, as a WebSocket. Binary
 * messages are its bytes, both ways. An empty message ends the client's side.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/error.h"
#include "api/v1/v1.h"
#include "http/ws.h"
#include "wire/host.h"

enum { DIAL_MS = 30000, PIECE = 32 * 1024, TURN = 8, NORMAL = 1000, GONE = 1001, BAD = 1003 };

struct tunnel {
	struct v1 *v;
	struct box_port in; /* the box's list */
	struct link_dial dial;
	struct http_ws *ws;
	int fd;
	struct loop_io io;
	struct buf out; /* for the port, not taken by the kernel */
	bool eof;	/* the client's side has ended */
	bool full;	/* the client takes no more just now */
};

static void watch(struct tunnel *t)
{
	uint32_t events = (t->full ? 0 : EPOLLIN) | (t->out.len ? EPOLLOUT : 0);

	(void)loop_mod(&t->v->q->front->loop, &t->io, events);
}

/* False: the port takes no more at all. */
static bool push(struct tunnel *t)
{
	while (t->out.len) {
		ssize_t n = write(t->fd, t->out.data, t->out.len);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return false;
		buf_shift(&t->out, (size_t)n);
	}
	if (t->out.len == 0 && t->eof)
		(void)shutdown(t->fd, SHUT_WR);
	http_ws_hold(t->ws, t->out.len != 0);
	return true;
}

static void pull(struct tunnel *t)
{
	char piece[PIECE];

	for (int i = 0; i < TURN && !t->full; i++) {
		ssize_t n = read(t->fd, piece, sizeof piece);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			loop_del(&t->v->q->front->loop, &t->io);
			http_ws_close(t->ws, NORMAL, STR("the port closed"));
			return;
		}
		if (http_ws_send(t->ws, false, (struct str){ piece, (size_t)n }) != 0)
			t->full = true;
	}
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct tunnel *t = container_of(io, struct tunnel, io);

	if (events & EPOLLOUT && !push(t)) {
		loop_del(&t->v->q->front->loop, &t->io);
		http_ws_close(t->ws, NORMAL, STR("the port closed"));
		return;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		pull(t);
	if (t->io.fd >= 0)
		watch(t);
}

static void on_message(struct http_ws *ws, bool is_text, struct str data)
{
	struct tunnel *t = ws->user;

	if (t->io.fd < 0)
		return;
	if (is_text || t->eof || buf_add_str(&t->out, data) < 0) {
		http_ws_close(ws, BAD, STR("bytes only"));
		return;
	}
	t->eof = data.n == 0;
	if (push(t))
		watch(t);
	else
		http_ws_close(ws, NORMAL, STR("the port closed"));
}

static void on_room(struct http_ws *ws)
{
	struct tunnel *t = ws->user;

	t->full = false;
	if (t->io.fd >= 0)
		watch(t);
}

static void on_ws_ended(struct http_ws *ws, int code)
{
	struct tunnel *t = ws->user;
	struct http_request *r = ws->request;

	(void)code;
	t->ws = NULL;
	r->user = t->v->q;
	v1_ended(r, HTTP_END_DONE);
}

static void tunnel_free(struct v1 *v)
{
	struct tunnel *t = v->own;

	loop_del(&v->q->front->loop, &t->io);
	link_dial_drop(&t->dial);
	box_port_remove(&t->in);
	fd_close(&t->fd);
	buf_done(&t->out);
	free(t);
}

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	static const struct http_ws_handler handler = { .message = on_message,
							.room = on_room,
							.ended = on_ws_ended };
	struct tunnel *t = container_of(d, struct tunnel, dial);
	struct err e = { 0 };
	int on = 1;

	if (fd < 0) {
		(void)err_set(&e, ERR_CONFLICT, "port %s of sandbox '%s': %s", t->v->q->sub,
			      t->v->q->id, why->msg);
		(void)err_code(&e, "port.closed", NULL);
		api_refuse_err(t->v->q->http, &e);
		return;
	}
	t->fd = fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	t->ws = http_ws_accept(t->v->q->http, STR_NONE, &handler, t);
	if (t->ws && loop_add(&t->v->q->front->loop, &t->io, fd, EPOLLIN, on_io) < 0)
		http_ws_close(t->ws, GONE, STR("out of memory"));
}

/* The sandbox is gone, or its key. */
static void on_box_gone(struct box_port *in)
{
	struct tunnel *t = container_of(in, struct tunnel, in);

	if (t->ws) {
		loop_del(&t->v->q->front->loop, &t->io);
		http_ws_close(t->ws, GONE, STR("the sandbox is gone"));
	} else {
		v1_gone(t->v, NULL);
	}
}

static void begin(struct v1 *v, struct box *b)
{
	struct tunnel *t;
	struct err e = { 0 };
	uint16_t port;

	if (!v1_is_websocket(v))
		return;
	if (port_parse(str_of(v->q->sub), &port) < 0) {
		(void)err_set(&e, ERR_INVALID, "'%s' is not a port", v->q->sub);
		api_refuse_err(v->q->http, &e);
		return;
	}
	t = calloc(1, sizeof *t);
	if (!t) {
		api_refuse(v->q->http, 503, "out of memory");
		return;
	}
	*t = (struct tunnel){ .v = v,
			      .fd = FD_NONE,
			      .io.fd = FD_NONE,
			      .in.gone = on_box_gone,
			      .dial.done = on_dialed,
			      .out = BUF_INIT(2 * LIMIT_WS_MESSAGE) };
	v->own = t;
	v->own_done = tunnel_free;
	box_port_add(b, &t->in);
	if (link_dial(b->link, &t->dial, port, DIAL_MS) < 0)
		api_refuse(v->q->http, 503, "the sandbox takes no more requests just now");
}

void v1_port_connect(struct api_request *q)
{
	v1_with_box(q, begin);
}
