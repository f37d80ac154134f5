/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   client ── http_request ── data() ──> out ──> fd ── server
 *          <── http_answer_write() <── in <─────────
 *
 * Each direction stops when the other end of it is full. The server's end closes as soon as nothing
 * more is expected from it; the proxy itself lives until the request has ended.
 */
#include "http/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "http/proxy_head.h"
#include "wire/http_write.h"

enum {
	PROXY_BUFFER = 64 * 1024,
	PROXY_ANSWER_MS = 600 * 1000,
	PROXY_ROUNDS = 4,
};

struct http_proxy {
	struct http_request *r;
	struct loop_io io;
	struct loop_timer timer;
	int fd; /* FD_NONE once the server's end is closed */
	struct http_proxy_options o;
	struct buf out, in;
	size_t sent, taken;
	bool chunked;	/* the request's body */
	bool body_done; /* the whole request is in out */
	bool begun, tunnel, full, eof, shut, over;
	bool asked_upgrade, keep;
	struct http_body body; /* of the answer */
};

static void on_server(struct loop_io *io, uint32_t events);

static struct loop *loop_of(const struct http_proxy *p)
{
	return p->r->server->loop;
}

static void server_close(struct http_proxy *p)
{
	loop_timer_stop(loop_of(p), &p->timer);
	loop_del(loop_of(p), &p->io);
	fd_close(&p->fd);
}

/* The server failed us: an error if nothing was answered, else the client sees a cut. */
static void proxy_fail(struct http_proxy *p, int status)
{
	bool begun = p->begun;

	server_close(p);
	p->over = p->begun = true;
	if (begun)
		http_request_cut(p->r);
	else if (p->o.failed)
		p->o.failed(p->r, p->o.user, status);
	else
		http_answer(p->r, status, "text/plain",
			    status == 504 ? STR("the server did not answer in time\n")
					  : STR("the server's answer failed\n"));
}

static size_t out_unsent(const struct http_proxy *p)
{
	return p->out.len - p->sent;
}

static void watch_server(struct http_proxy *p)
{
	if (p->fd < 0)
		return;
	(void)loop_mod(loop_of(p), &p->io,
		       (p->full || p->eof ? 0 : EPOLLIN) | (out_unsent(p) ? EPOLLOUT : 0));
}

/* --- to the server --- */

/* A server may answer and close without reading everything: that is not an error yet. */
static void server_write(struct http_proxy *p)
{
	size_t before = out_unsent(p);

	while (out_unsent(p)) {
		ssize_t n = send(p->fd, p->out.data + p->sent, out_unsent(p),
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* its answer may still be there to read */
			p->keep = false;
			p->sent = p->out.len;
			break;
		}
		p->sent += (size_t)n;
	}
	if (out_unsent(p) == 0) {
		buf_clear(&p->out);
		p->sent = 0;
		if (p->body_done && p->tunnel && !p->shut) {
			(void)shutdown(p->fd, SHUT_WR);
			p->shut = true;
		}
	}
	if (before >= PROXY_BUFFER / 2 && out_unsent(p) < PROXY_BUFFER / 2)
		http_request_resume(p->r);
}

static size_t on_data(struct http_request *r, struct str data)
{
	struct http_proxy *p = r->user;
	size_t room = PROXY_BUFFER - (out_unsent(p) < PROXY_BUFFER ? out_unsent(p) : PROXY_BUFFER);
	int err;

	if (p->fd < 0)
		return data.n;
	if (data.n > room)
		data.n = room;
	if (p->sent) {
		buf_shift(&p->out, p->sent);
		p->sent = 0;
	}
	err = p->chunked && !p->tunnel ? http_put_chunk(&p->out, data) : buf_add_str(&p->out, data);
	if (err < 0) {
		proxy_fail(p, 502);
		return data.n;
	}
	server_write(p);
	watch_server(p);
	return data.n;
}

static void on_body_end(struct http_request *r)
{
	struct http_proxy *p = r->user;

	if (p->fd < 0)
		return;
	p->body_done = true;
	if (p->chunked && !p->tunnel && http_put_last_chunk(&p->out) < 0) {
		proxy_fail(p, 502);
		return;
	}
	server_write(p);
	watch_server(p);
}

/* --- from the server --- */

static struct str in_unused(const struct http_proxy *p)
{
	return buf_behind(&p->in, p->taken);
}

static int begin_tunnel(struct http_proxy *p, const struct http_head *h)
{
	const struct str *to = http_header(h, "upgrade");

	if (!p->asked_upgrade || !to)
		return -EBADMSG;
	proxy_copy_answer(p->r, h);
	if (http_answer_tunnel(p->r, *to) < 0)
		return -EBADMSG;
	p->tunnel = true;
	p->body_done = false;
	return 0;
}

/* The head of the answer. 1: done, 0: more must come, -EBADMSG. */
static int read_head(struct http_proxy *p)
{
	struct http_head h;
	int64_t n = http_response_parse(in_unused(p), p->r->method, &h);
	int r;

	if (n <= 0)
		return n < 0 ? -EBADMSG : 0;
	p->taken += (size_t)n;
	if (h.status < 200 && h.status != 101)
		return 1;
	if (h.status == 101) {
		r = begin_tunnel(p, &h);
	} else {
		proxy_copy_answer(p->r, &h);
		r = http_answer_begin(p->r, h.status, NULL, proxy_length(&h, p->r));
	}
	if (r < 0)
		return -EBADMSG;
	p->begun = true;
	p->keep = h.keep_alive;
	loop_timer_stop(loop_of(p), &p->timer);
	http_body_init(&p->body, &h);
	return 1;
}

/* The answer is complete. */
static void answer_done(struct http_proxy *p)
{
	p->over = true;
	p->keep = p->keep && p->body_done && out_unsent(p) == 0 && p->taken == p->in.len && !p->eof;
	if (!p->keep)
		server_close(p);
	else
		loop_del(loop_of(p), &p->io);
	http_answer_end(p->r);
}

/* Pass on what was read. -EBADMSG if it is malformed. */
static int pass_answer(struct http_proxy *p)
{
	while (!p->full && !p->over) {
		struct str in, data;
		int r;

		if (!p->begun) {
			r = read_head(p);
			if (r <= 0)
				return r;
			continue;
		}
		in = in_unused(p);
		if (p->tunnel) {
			data = in;
			in.n = 0;
			r = data.n ? HTTP_DATA : HTTP_MORE;
		} else {
			r = http_body_next(&p->body, &in, &data);
		}
		p->taken = p->in.len - in.n;
		if (r < 0 || r == HTTP_MORE)
			return r < 0 ? r : 0;
		if (r == HTTP_END) {
			answer_done(p);
			return 0;
		}
		r = http_answer_write(p->r, data);
		if (r < 0)
			return r;
		p->full = r == 1;
	}
	return 0;
}

/* 1: bytes came, 0: none now, -errno. */
static int server_read(struct http_proxy *p)
{
	ssize_t n;

	buf_shift(&p->in, p->taken);
	p->taken = 0;
	if (buf_reserve(&p->in, PROXY_BUFFER - p->in.len) < 0)
		return -ENOMEM;
	n = recv(p->fd, p->in.data + p->in.len, PROXY_BUFFER - p->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->eof = n == 0;
	buf_grew(&p->in, (size_t)n);
	return n > 0;
}

/* The server sends no more. */
static void server_ended(struct http_proxy *p)
{
	if (p->begun && (p->tunnel || http_body_eof(&p->body) == 0)) {
		p->keep = false;
		p->over = true;
		server_close(p);
		http_answer_end(p->r);
	} else {
		proxy_fail(p, 502);
	}
}

static void on_server(struct loop_io *io, uint32_t events)
{
	struct http_proxy *p = container_of(io, struct http_proxy, io);
	int r = 1;

	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		server_write(p);
	for (int i = 0; i < PROXY_ROUNDS && r > 0 && !p->full && !p->over && !p->eof; i++) {
		r = server_read(p);
		if (r < 0 || pass_answer(p) < 0) {
			proxy_fail(p, 502);
			return;
		}
	}
	if (p->eof && !p->over && !p->full)
		server_ended(p);
	if (events & (EPOLLERR | EPOLLHUP) && p->full && p->fd >= 0)
		loop_del(loop_of(p), &p->io); /* else it would tell again at once */
	else
		watch_server(p);
}

static void on_room(struct http_request *r)
{
	struct http_proxy *p = r->user;

	p->full = false;
	if (p->over || p->fd < 0)
		return;
	if (pass_answer(p) < 0) {
		proxy_fail(p, 502);
		return;
	}
	if (p->full || p->over)
		return;
	if (p->eof)
		server_ended(p);
	else if (p->io.fd < 0 && loop_add(loop_of(p), &p->io, p->fd, EPOLLIN, on_server) < 0)
		proxy_fail(p, 502);
	watch_server(p);
}

static void on_timeout(struct loop_timer *t)
{
	proxy_fail(container_of(t, struct http_proxy, timer), 504);
}

static void on_ended(struct http_request *r, enum http_end why)
{
	struct http_proxy *p = r->user;
	int fd = FD_NONE;

	if (why == HTTP_END_DONE && p->keep && p->over)
		fd = TAKE_FD(p->fd);
	server_close(p);
	if (p->o.ended)
		p->o.ended(p->o.user, fd);
	else
		fd_close(&fd);
	buf_done(&p->in);
	buf_done(&p->out);
	free(p);
}

static const struct http_handler proxy_handler = {
	.data = on_data,
	.body_end = on_body_end,
	.room = on_room,
	.ended = on_ended,
};

static int proxy_ask(struct http_proxy *p)
{
	const struct http_head *h = http_request_head(p->r);
	int err;

	p->asked_upgrade = h->upgrade && !p->r->has_body;
	p->chunked = h->framing == HTTP_BODY_CHUNKED;
	err = proxy_put_request(&p->out, p->r, &p->o);
	if (err == 0)
		err = io_set_nonblock(p->fd, true);
	if (err == 0)
		err = loop_add(loop_of(p), &p->io, p->fd, EPOLLIN, on_server);
	return err;
}

int http_proxy_start(struct http_request *r, int fd, const struct http_proxy_options *o)
{
	struct http_proxy *p = calloc(1, sizeof *p);
	unsigned answer_ms = o->answer_ms ? o->answer_ms : PROXY_ANSWER_MS;
	int err;

	if (!p) {
		fd_close(&fd);
		return -ENOMEM;
	}
	*p = (struct http_proxy){ .r = r, .fd = fd, .o = *o, .io = { .fd = FD_NONE } };
	/* The head, or a window of the body with its chunk. */
	p->out = (struct buf)BUF_INIT(2 * PROXY_BUFFER);
	p->in = (struct buf)BUF_INIT(PROXY_BUFFER);
	err = proxy_ask(p);
	if (err == 0)
		err = http_request_stream(r, 0, true);
	if (err < 0) {
		server_close(p);
		buf_done(&p->out);
		free(p);
		return err;
	}
	p->o.remove = NULL;
	r->handler = &proxy_handler;
	r->user = p;
	loop_timer_set(loop_of(p), &p->timer, answer_ms * NS_PER_MS, on_timeout);
	server_write(p);
	watch_server(p);
	return 0;
}
