/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: their lists, events and ends. The state table is in docs/internals/http.md. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/parts.h"

enum {
	ROUNDS = 4, /* of one run, so that other connections get their turn */
	SHAKES = 8, /* steps of handshakes per turn: each takes most of a millisecond */
	IN_KEEP = 0,
	TLS_MEMORY = 15 * 1024, /* what OpenSSL holds for a connection, measured */
};

static void on_io(struct loop_io *io, uint32_t events);

/* --- lists --- */

static void idle_leave(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (!c->is_idle)
		return;
	*(c->idle_prev ? &c->idle_prev->idle_next : &s->idle_first) = c->idle_next;
	*(c->idle_next ? &c->idle_next->idle_prev : &s->idle_last) = c->idle_prev;
	c->is_idle = false;
	s->counters.idle--;
}

static void idle_enter(struct http_conn *c)
{
	struct http_server *s = c->server;

	c->idle_prev = s->idle_last;
	c->idle_next = NULL;
	*(s->idle_last ? &s->idle_last->idle_next : &s->idle_first) = c;
	s->idle_last = c;
	c->is_idle = true;
	s->counters.idle++;
}

static void work_leave(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (!c->queued)
		return;
	*(c->work_prev ? &c->work_prev->work_next : &s->work_first) = c->work_next;
	*(c->work_next ? &c->work_next->work_prev : &s->work_last) = c->work_prev;
	c->queued = false;
}

static void on_kick(struct loop_timer *t)
{
	struct http_server *s = container_of(t, struct http_server, kick);
	struct http_conn *last = s->work_last, *c;

	s->shakes = 0;
	do {
		c = s->work_first;
		if (c)
			http_conn_run(c);
	} while (c && c != last);
	if (s->work_first) /* those that queued themselves again */
		loop_timer_set(s->loop, &s->kick, 0, on_kick);
}

static void work_enter(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (c->queued)
		return;
	if (!s->work_first)
		loop_timer_set(s->loop, &s->kick, 0, on_kick);
	c->work_prev = s->work_last;
	c->work_next = NULL;
	*(s->work_last ? &s->work_last->work_next : &s->work_first) = c;
	s->work_last = c;
	c->queued = true;
}

void http_conn_touch(struct http_conn *c)
{
	if (!c->entered)
		work_enter(c);
}

/* --- life --- */

void http_conn_set_state(struct http_conn *c, enum http_state state)
{
	idle_leave(c);
	c->state = (uint8_t)state;
	c->since_ns = clock_mono_ns();
	if (state == HTTP_IDLE)
		idle_enter(c);
}

struct http_conn *http_conn_new(struct http_server *s, int fd, struct http_filter *filter)
{
	struct http_conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->server = s;
	c->filter = filter;
	c->first = true;
	c->is_tls = filter->ops->shake != NULL;
	c->in = (struct buf)BUF_INIT(LIMIT_HTTP_IN);
	if (loop_add(s->loop, &c->io, fd, EPOLLIN, on_io) < 0) {
		free(c);
		return NULL;
	}
	c->fd = fd;
	c->next = s->all;
	if (s->all)
		s->all->prev = c;
	s->all = c;
	s->counters.conns++;
	http_conn_set_state(c, c->is_tls ? HTTP_HANDSHAKE : HTTP_IDLE);
	return c;
}

void http_conn_close(struct http_conn *c, enum http_end why)
{
	if (c->state == HTTP_CLOSED)
		return;
	http_conn_set_state(c, HTTP_CLOSED);
	if (c->x)
		c->x->why = why;
	loop_del(c->server->loop, &c->io);
	loop_timer_stop(c->server->loop, &c->timer);
	c->filter->ops->free(c->filter);
	c->filter = http_filter_plain(); /* the app may still ask about the connection */
	fd_close(&c->fd);
	http_conn_touch(c);
}

static void count_body(struct http_exchange *x)
{
	struct http_server *s = x->c->server;

	s->bodies += x->body.len - x->counted;
	if (x->c->owner)
		x->c->owner->bodies += x->body.len - x->counted;
	x->counted = x->body.len;
}

struct http_exchange *http_exchange_new(struct http_conn *c)
{
	struct http_exchange *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->c = c;
	x->r.server = c->server;
	x->r.began_ns = x->in_ns = x->out_ns = clock_mono_ns();
	x->text = (struct buf)BUF_INIT(LIMIT_HTTP_HEAD);
	x->fields = (struct buf)BUF_INIT(LIMIT_HTTP_HEAD);
	body_out_init(&x->out);
	c->x = x;
	http_conn_set_state(c, HTTP_ACTIVE);
	return x;
}

void http_exchange_end(struct http_conn *c, enum http_end why)
{
	struct http_exchange *x = TAKE_PTR(c->x);
	struct http_server *s = c->server;

	if (x->r.handler && x->r.handler->ended)
		x->r.handler->ended(&x->r, why);
	if (s->head_of == &x->r)
		s->head_of = NULL;
	if (x->full_in)
		s->full--;
	if (x->window)
		s->streams--;
	s->bodies -= x->counted;
	if (c->owner)
		c->owner->bodies -= x->counted;
	body_in_done(&x->in);
	body_out_done(&x->out);
	buf_done(&x->body);
	buf_done(&x->fields);
	buf_done(&x->text);
	free(x);
	http_server_full_wake(s);
}

static void charge(struct http_conn *c)
{
	const struct http_exchange *x = c->x;
	uint64_t n = c->in.cap + (c->is_tls && c->state != HTTP_CLOSED ? TLS_MEMORY : 0);

	if (x)
		n += sizeof *x + x->text.cap + x->body.cap + x->fields.cap + x->out.out.cap +
		     x->out.next.cap;
	c->server->memory += n - c->charged;
	c->charged = n;
}

static void dispose(struct http_conn *c)
{
	struct http_server *s = c->server;

	work_leave(c);
	if (c->x)
		http_exchange_end(c, c->x->why);
	buf_done(&c->in);
	charge(c);
	*(c->prev ? &c->prev->next : &s->all) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->counters.conns--;
	http_server_leave(c);
	free(c);
	http_server_resume(s);
}

/* --- events --- */

static void on_timer(struct loop_timer *t)
{
	struct http_conn *c = container_of(t, struct http_conn, timer);
	uint64_t at = http_conn_deadline(c);

	if (at && at <= clock_mono_ns())
		http_conn_expire(c);
	http_conn_run(c);
}

/* The deadline only moves back while bytes move: then the timer runs early and is set anew. */
static void settle_timer(struct http_conn *c)
{
	uint64_t at = http_conn_deadline(c), now;

	if (at == 0 || (c->timer.at_ns && c->timer.at_ns <= at))
		return;
	now = clock_mono_ns();
	loop_timer_set(c->server->loop, &c->timer, at > now ? at - now : 0, on_timer);
}

static void settle(struct http_conn *c, bool more)
{
	const struct http_exchange *x = c->x;
	bool wants_in = http_conn_wants_input(c);
	bool wants_out = x && c->blocked && body_out_unsent(&x->out) > 0;
	uint32_t events = 0;

	if (x)
		count_body(c->x);
	if (c->in.len == c->taken && !(x && (x->piece.n || body_in_holds(&x->in)))) {
		buf_clear(&c->in);
		c->taken = 0;
		buf_trim(&c->in, IN_KEEP);
	}
	if (wants_in)
		events |= c->filter->read_wants_write ? EPOLLOUT : EPOLLIN;
	else if (!c->hup)
		events |= EPOLLRDHUP;
	if (wants_out)
		events |= c->filter->write_wants_read ? EPOLLIN : EPOLLOUT;
	if (c->state == HTTP_HANDSHAKE)
		events = c->filter->read_wants_write ? EPOLLOUT : EPOLLIN;
	(void)loop_mod(c->server->loop, &c->io, events);
	settle_timer(c);
	charge(c);
	http_server_resume(c->server);
	if (more)
		work_enter(c);
}

static bool shake(struct http_conn *c, bool *ret_later)
{
	int r;

	*ret_later = c->server->shakes >= SHAKES;
	if (*ret_later)
		return false;
	c->server->shakes++;
	r = c->filter->ops->shake(c->filter, c->fd);
	if (r == -EAGAIN)
		return false;
	if (r < 0)
		http_conn_close(c, HTTP_END_GONE);
	else
		http_conn_set_state(c, HTTP_IDLE);
	return true;
}

/* The client sends no more, and nothing reads: the app decides what that means. */
static void notice_gone(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	if (!x || x->told_gone || x->tunnel || x->out_mode == HTTP_OUT_ENDED)
		return;
	if (x->in_mode != HTTP_IN_DONE && x->in_mode != HTTP_IN_UNASKED)
		return;
	x->told_gone = true;
	if (x->r.handler && x->r.handler->gone)
		x->r.handler->gone(&x->r);
	else
		http_conn_close(c, HTTP_END_GONE);
}

void http_conn_run(struct http_conn *c)
{
	bool moved = true, later = false;

	c->entered = true;
	work_leave(c);
	for (int i = 0; i < ROUNDS && moved && c->state != HTTP_CLOSED; i++) {
		if (c->hup)
			notice_gone(c);
		if (c->state == HTTP_CLOSED)
			break;
		if (c->state == HTTP_HANDSHAKE) {
			moved = shake(c, &later);
			continue;
		}
		moved = http_conn_read(c);
		if (c->state != HTTP_CLOSED)
			moved |= http_conn_write(c);
	}
	c->entered = false;
	if (c->state == HTTP_CLOSED)
		dispose(c);
	else
		settle(c, moved || later);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct http_conn *c = container_of(io, struct http_conn, io);
	const struct http_filter *f = c->filter;

	if (events & (EPOLLERR | EPOLLHUP)) {
		http_conn_close(c, HTTP_END_GONE);
		return; /* the kick disposes of c */
	}
	if (events & (EPOLLIN | EPOLLRDHUP) || f->read_wants_write)
		c->dry = false;
	if (events & EPOLLOUT || f->write_wants_read)
		c->blocked = false;
	c->hup |= (events & EPOLLRDHUP) != 0;
	http_conn_run(c);
}
