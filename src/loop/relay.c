/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct relay_end *other(struct relay_end *e)
{
	return e == &e->r->end[0] ? &e->r->end[1] : &e->r->end[0];
}

void relay_done(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		loop_del(r->loop, &r->end[i].io);
		fd_close(&r->end[i].fd);
		free(r->end[i].data);
		r->end[i].data = NULL;
	}
}

/* Moves bytes from e to its other end. -1: the connection broke. */
static int pass(struct relay_end *e)
{
	struct relay_end *o = other(e);
	ssize_t n;

	for (;;) {
		if (e->from == e->to && !e->eof) {
			n = recv(e->fd, e->data, RELAY_CHUNK, MSG_DONTWAIT);
			if (n < 0)
				return errno == EAGAIN || errno == EINTR ? 0 : -1;
			e->eof = n == 0;
			e->from = 0;
			e->to = (size_t)n;
		}
		if (e->from < e->to) {
			n = send(o->fd, e->data + e->from, e->to - e->from,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0)
				return errno == EAGAIN || errno == EINTR ? 0 : -1;
			e->from += (size_t)n;
			continue;
		}
		if (e->eof && !o->shut) {
			(void)shutdown(o->fd, SHUT_WR);
			o->shut = true;
		}
		if (e->eof)
			return 0;
	}
}

static void watch(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		struct relay_end *e = &r->end[i], *o = &r->end[!i];
		uint32_t events = (e->eof || e->from < e->to ? 0 : EPOLLIN) |
				  (o->from < o->to ? EPOLLOUT : 0);

		(void)loop_mod(r->loop, &e->io, events);
	}
}

static void on_end(struct loop_io *io, uint32_t events)
{
	struct relay_end *e = container_of(io, struct relay_end, io);
	struct relay *r = e->r;

	if ((events & (EPOLLERR | EPOLLHUP) && e->eof) || pass(&r->end[0]) < 0 ||
	    pass(&r->end[1]) < 0 || (r->end[0].shut && r->end[1].shut))
		r->ended(r);
	else
		watch(r);
}

int relay_begin(struct relay *r, struct loop *l, int a, int b, void (*ended)(struct relay *))
{
	int fds[2] = { a, b }, err = 0;

	*r = (struct relay){ .loop = l, .ended = ended };
	for (int i = 0; i < 2; i++) {
		struct relay_end *e = &r->end[i];

		*e = (struct relay_end){ .r = r, .fd = fds[i], .data = malloc(RELAY_CHUNK) };
		if (!e->data)
			err = -ENOMEM;
	}
	for (int i = 0; i < 2 && err == 0; i++)
		err = loop_add(l, &r->end[i].io, r->end[i].fd, EPOLLIN, on_end);
	if (err < 0)
		relay_done(r);
	return err;
}
