/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a connection, and what follows when an answer is complete. */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/parts.h"

/*
 * A close() with unread input would reset the connection, and the client would lose the answer. So
 * we say that nothing more comes, and drop what still arrives for a while.
 */
static void linger(struct http_conn *c)
{
	if (c->eof) {
		http_conn_close(c, HTTP_END_DONE);
		return;
	}
	c->filter->ops->shut(c->filter, c->fd);
	(void)shutdown(c->fd, SHUT_WR);
	c->dropped = 0;
	http_conn_set_state(c, HTTP_LINGER);
}

/* The answer is sent. */
static void finish(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	bool keep = x->keep && !x->tunnel && !c->server->draining;

	keep = keep && body_in_is_complete(&x->in);
	http_exchange_end(c, x->refused ? HTTP_END_REFUSED : HTTP_END_DONE);
	c->seen = 0;
	if (c->state == HTTP_CLOSED) /* the app cut it */
		return;
	if (keep && !(c->eof && c->taken == c->in.len))
		http_conn_set_state(c, HTTP_IDLE);
	else
		linger(c);
}

/* The rest of a short body is dropped, so that the connection can stay. */
static bool waits_for_drop(const struct http_exchange *x)
{
	return x->keep && x->in_mode == HTTP_IN_DROP && !x->c->eof;
}

static bool flush_out(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	size_t budget = LIMIT_HTTP_OUT;
	bool moved = false;

	while (!c->blocked && budget) {
		struct str front = body_out_front(&x->out);
		size_t most = front.n < budget ? front.n : budget;
		ssize_t n;

		if (front.n == 0)
			break;
		n = c->filter->ops->write(c->filter, c->fd, front.p, most);
		if (n == -EAGAIN || n == 0) {
			c->blocked = true;
			break;
		}
		if (n < 0) {
			http_conn_close(c, HTTP_END_GONE);
			return true;
		}
		body_out_wrote(&x->out, (size_t)n);
		x->out_ns = clock_mono_ns();
		budget -= (size_t)n;
		moved = true;
	}
	return moved;
}

bool http_conn_write(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	bool moved;

	if (!x)
		return false;
	moved = flush_out(c);
	if (c->state == HTTP_CLOSED)
		return true;
	if (x->full_out && x->out_mode == HTTP_OUT_STREAM &&
	    body_out_unsent(&x->out) <= x->window / 2) {
		x->full_out = false;
		moved = true;
		if (x->r.handler && x->r.handler->room)
			x->r.handler->room(&x->r);
	}
	if (c->state != HTTP_CLOSED && x->out_mode == HTTP_OUT_ENDED &&
	    body_out_unsent(&x->out) == 0 && !waits_for_drop(x)) {
		finish(c);
		moved = true;
	}
	return moved;
}
