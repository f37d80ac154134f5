/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a connection: heads, bodies, and what is dropped after an early answer. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "http/parts.h"
#include "wire/url.h"

static struct str unused(const struct http_conn *c)
{
	return buf_behind(&c->in, c->taken);
}

static bool exchange_wants_input(const struct http_exchange *x)
{
	switch (x->in_mode) {
	case HTTP_IN_BUFFER:
		return !x->full_in;
	case HTTP_IN_STREAM:
		return !x->paused;
	case HTTP_IN_DROP:
		return true;
	case HTTP_IN_UNASKED:
	case HTTP_IN_DONE:
		break;
	}
	return false;
}

bool http_conn_wants_input(const struct http_conn *c)
{
	if (c->eof || c->state == HTTP_CLOSED)
		return false;
	if (c->state != HTTP_ACTIVE)
		return true;
	return exchange_wants_input(c->x) && c->taken == c->in.len && c->x->piece.n == 0 &&
	       !body_in_holds(&c->x->in);
}

/* Append input behind what is unused. True if something came, or the end. */
static bool receive(struct http_conn *c, size_t most)
{
	struct http_server *s = c->server;
	ssize_t n;

	if (c->dry || c->eof || most == 0)
		return false;
	buf_shift(&c->in, c->taken);
	c->taken = 0;
	n = c->filter->ops->read(c->filter, c->fd, s->scratch, most);
	c->dry = n == -EAGAIN || (n > 0 && (size_t)n < most && c->filter == http_filter_plain());
	if (n == -EAGAIN)
		return false;
	if (n < 0 || (n > 0 && buf_add(&c->in, s->scratch, (size_t)n) < 0)) {
		http_conn_close(c, HTTP_END_GONE);
		return false;
	}
	if (n == 0)
		c->eof = c->hup = true;
	if (c->x)
		c->x->in_ns = clock_mono_ns();
	return true;
}

/* --- head --- */

static void exchange_fill(struct http_exchange *x, const struct http_head *h)
{
	struct http_request *r = &x->r;

	r->method = h->method;
	r->target = h->target;
	r->path = h->path;
	r->query = h->query;
	r->has_body = h->framing != HTTP_BODY_NONE;
	r->length = h->framing == HTTP_BODY_CHUNKED ? UINT64_MAX : h->length;
	x->owes_continue = h->expect_continue && h->minor == 1;
	x->keep = h->keep_alive;
	x->is_head = str_is(h->method, "HEAD");
	x->wants_gzip = http_has_token(h, "accept-encoding", "gzip");
	x->minor = h->minor;
	body_in_init(&x->in, h);
}

static void exchange_start(struct http_conn *c, size_t head_n)
{
	struct http_server *s = c->server;
	struct http_exchange *x = http_exchange_new(c);

	if (!x || buf_add(&x->text, c->in.data + c->taken, head_n) < 0) {
		http_conn_close(c, HTTP_END_GONE);
		return;
	}
	c->taken += head_n;
	c->seen = 0;
	c->first = false;
	s->counters.requests++;
	/* Again, because the views must lie in the exchange's own copy. */
	(void)http_request_parse(buf_str(&x->text), &s->head);
	s->head_of = &x->r;
	exchange_fill(x, &s->head);
	if (s->head.form == HTTP_AUTHORITY) {
		http_conn_refuse(c, 405, "CONNECT is not supported");
		return;
	}
	if (s->head.form != HTTP_ASTERISK && url_path_check(x->r.path) < 0) {
		http_conn_refuse(c, 400, "the path is malformed");
		return;
	}
	s->app->start(&x->r);
	if (c->x == x && x->out_mode == HTTP_OUT_OPEN && !x->r.handler)
		http_conn_refuse(c, 500, "nothing handles the request");
}

/* The whole head is parsed only when a line has come to its end. */
static bool may_be_complete(struct http_conn *c)
{
	struct str in = unused(c);
	size_t from = c->seen;

	c->seen = in.n;
	return in.n >= LIMIT_HTTP_HEAD || memchr(in.p + from, '\n', in.n - from);
}

static void head_look(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct str in = unused(c);
	int64_t n;

	if (c->state == HTTP_IDLE)
		http_conn_set_state(c, HTTP_HEAD);
	if (!may_be_complete(c))
		return;
	s->head_of = NULL;
	n = http_request_parse(in, &s->head);
	if (n < 0)
		http_conn_refuse(c, http_error_status(n), s->head.why);
	else if (n > 0)
		exchange_start(c, (size_t)n);
}

static bool read_head(struct http_conn *c)
{
	size_t n = c->in.len - c->taken;

	if (n == c->seen && !receive(c, LIMIT_HTTP_HEAD - n))
		return false;
	n = c->in.len - c->taken;
	if (n > c->seen)
		head_look(c);
	else if (c->eof)
		http_conn_close(c, HTTP_END_GONE);
	return true;
}

/* --- body --- */

static void body_bad(struct http_conn *c, int err)
{
	const char *why = c->x->in.why ? c->x->in.why : "there is not enough memory";

	http_conn_refuse(c, err == -E2BIG ? 413 : err == -ENOMEM ? 503 : 400, why);
}

static void body_ended(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	enum http_in_mode mode = x->in_mode;
	const struct http_handler *h = x->r.handler;

	x->in_mode = HTTP_IN_DONE;
	x->in_ns = clock_mono_ns();
	if (mode == HTTP_IN_BUFFER && h && h->body)
		h->body(&x->r, buf_str(&x->body));
	else if (mode == HTTP_IN_STREAM && h && h->body_end)
		h->body_end(&x->r);
}

/* Room for n more bytes of buffered bodies. No owner takes all of it from the others. */
static bool has_room(const struct http_exchange *x, uint64_t n)
{
	const struct http_server *s = x->c->server;
	const struct http_owner *o = x->c->owner;

	return s->bodies + n <= s->limits.bodies && (!o || o->bodies + n <= s->limits.bodies / 2);
}

/* Bodies wait for room until the limit of all of them allows more. */
static void buffer_piece(struct http_exchange *x)
{
	struct http_server *s = x->c->server;
	int r;

	if (!has_room(x, x->body.len - x->counted + x->piece.n)) {
		x->full_in = true;
		x->in_ns = clock_mono_ns();
		s->full++;
		return;
	}
	r = buf_add_str(&x->body, x->piece);
	x->piece = STR_NONE;
	if (r < 0)
		body_bad(x->c, -ENOMEM);
}

static void deliver(struct http_exchange *x)
{
	const struct http_handler *h = x->r.handler;
	size_t n = x->piece.n;

	x->r.bytes_in = x->in.got;
	if (x->in_mode == HTTP_IN_BUFFER) {
		buffer_piece(x);
		return;
	}
	if (x->in_mode == HTTP_IN_STREAM && h && h->data)
		n = h->data(&x->r, x->piece);
	if (n > x->piece.n) /* answered meanwhile: the rest is dropped */
		n = x->piece.n;
	x->paused = n < x->piece.n;
	x->piece = x->paused ? (struct str){ x->piece.p + n, x->piece.n - n } : STR_NONE;
}

static int next_piece(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	struct str in = unused(c);
	int r;

	if (x->tunnel) {
		x->piece = in;
		x->in.got += in.n;
		c->taken = c->in.len;
		return in.n ? HTTP_DATA : HTTP_MORE;
	}
	r = body_in_next(&x->in, &in, &x->piece);
	c->taken = c->in.len - in.n;
	return r;
}

/* Pass on what is here. True if something was done. */
static bool feed(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	bool moved = false;

	while (c->x == x && c->state == HTTP_ACTIVE && exchange_wants_input(x)) {
		int r = x->piece.n ? HTTP_DATA : next_piece(c);

		if (r == HTTP_MORE)
			break;
		moved = true;
		if (r == HTTP_DATA) {
			deliver(x);
			continue;
		}
		if (r == HTTP_END)
			body_ended(c);
		else
			body_bad(c, r);
	}
	return moved;
}

static void body_cut_short(struct http_conn *c)
{
	if (c->x->tunnel)
		body_ended(c);
	else if (c->x->in_mode == HTTP_IN_DROP)
		c->x->in_mode = HTTP_IN_DONE;
	else
		http_conn_refuse(c, 400, "the body is incomplete");
}

static bool read_body(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	bool moved = feed(c);

	if (c->x == x && http_conn_wants_input(c) && receive(c, LIMIT_HTTP_IN)) {
		moved = true;
		(void)feed(c);
	}
	if (c->x == x && c->state == HTTP_ACTIVE && c->eof && exchange_wants_input(x) &&
	    c->taken == c->in.len && x->piece.n == 0) {
		moved = true;
		body_cut_short(c);
	}
	return moved;
}

static bool read_linger(struct http_conn *c)
{
	if (!c->eof && !receive(c, LIMIT_HTTP_IN))
		return false;
	c->dropped += (uint32_t)c->in.len;
	buf_clear(&c->in);
	c->taken = c->seen = 0;
	if (c->eof || c->dropped > LIMIT_HTTP_LINGER)
		http_conn_close(c, HTTP_END_GONE);
	return true;
}

bool http_conn_read(struct http_conn *c)
{
	if (c->state == HTTP_ACTIVE)
		return read_body(c);
	return c->state == HTTP_LINGER ? read_linger(c) : read_head(c);
}
