/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of init that is made before anybody asks for the next call: with its group and its pipes
 * it has done what is the same for every command (src/init/child.h), and waits for one.
 *
 * It saves a call the making of a process and two wake-ups. Where there is none, or a call cannot
 * use it (a terminal, a limit of its own, a long request), the call is made as it is asked for. The
 * child runs nothing, and has what init has: root inside can end it, as it can end any command, and
 * then there is none until the next call is answered.
 *
 * Its states are in call.h. The warden never waits for the child: a call may take it before it is
 * ready, and a switch that cannot tell it from another process yet tries again.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "sys/process/fdpass.h"
#include "warden/call/call.h"
#include "warden/features.h"

/* At init, numbers of calls that were made ready are others than those of calls. */
#define FIRST_JOB (1u << 31)

#define TO(s) (1u << (s))

bool spare_may_move(enum spare_state from, enum spare_state to)
{
	static const unsigned next[SPARE_STATES] = {
		[SPARE_NONE] = TO(SPARE_ASKED),
		[SPARE_ASKED] =
			TO(SPARE_READY) | TO(SPARE_TAKEN) | TO(SPARE_DROPPED) | TO(SPARE_NONE),
		[SPARE_READY] = TO(SPARE_TAKEN) | TO(SPARE_DROPPED) | TO(SPARE_NONE),
		[SPARE_TAKEN] = TO(SPARE_NONE),
		[SPARE_DROPPED] = TO(SPARE_NONE),
	};

	return next[from] & TO(to);
}

static bool move(struct spare *s, enum spare_state to)
{
	if (!spare_may_move(s->state, to))
		return false;
	s->state = to;
	return true;
}

static void close_order(struct spare *s)
{
	loop_del(&s->w->loop, &s->io);
	if (s->fd >= 0) /* also where a child of ours has a copy of it */
		(void)shutdown(s->fd, SHUT_RDWR);
	fds_close_socket(&s->fd);
}

void spare_free(struct spare *s)
{
	(void)move(s, SPARE_NONE);
	if (s->w->spare == s)
		s->w->spare = NULL;
	s->call->spare = NULL;
	/* A child that was taken reads its order from there, also when we have closed it. */
	loop_del(&s->w->loop, &s->io);
	fds_close_socket(&s->fd);
	free(s);
}

bool spare_ended(struct call *c)
{
	if (!c->spare || c->spare->state == SPARE_TAKEN)
		return false;
	call_free(c);
	return true;
}

/* Its call has all that it needs of it: it is like any other from then on. */
static void hand_over(struct spare *s)
{
	struct call *c = s->call;
	int inside = s->inside;

	spare_free(s);
	call_started(c, inside);
}

/* It ended before it came so far, and init will say so. */
static void give_up(struct spare *s)
{
	struct call *c = s->call;

	c->watch_idle = true;
	if (s->state == SPARE_TAKEN) {
		spare_free(s);
		call_check_done(c);
	} else {
		close_order(s);
		(void)move(s, SPARE_DROPPED);
	}
}

static void on_ready(struct loop_io *io, uint32_t events)
{
	struct spare *s = container_of(io, struct spare, io);
	struct warden *w = s->w;
	struct stand_by_ready said;
	int fd = FD_NONE, n = 0;
	int r = fdpass_recv_from(s->fd, &said, sizeof said, &fd, 1, &n, &s->outside);

	(void)events;
	loop_del(&w->loop, &s->io);
	if (r < 0 || n != (w->trace_level == TRACE_FULL)) {
		fds_discard(&fd, 1);
		give_up(s);
		return;
	}
	s->inside = said.pid;
	if (n == 1)
		call_watch(s->call, fd);
	if (s->state == SPARE_TAKEN) /* its order is there already */
		hand_over(s);
	else
		(void)move(s, SPARE_READY);
}

/* A packet is a message: none can be half there. */
static int open_order(struct spare *s, int fds[FD_ROLES])
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	s->fd = pair[0];
	fds[FD_ORDER] = pair[1];
	r = fdpass_ask_sender(s->fd);
	return r < 0 ? r : loop_add(&s->w->loop, &s->io, s->fd, EPOLLIN, on_ready);
}

static int prepare(struct spare *s, int fds[FD_ROLES])
{
	struct err ignored;
	struct call *c = s->call;
	int r = call_io_open(c, 0, 0, fds, &ignored) < 0 ? -EIO : open_order(s, fds);

	if (r == 0)
		r = call_open_group(c, fds);
	return r < 0 ? r : ask_send(NULL, c, fds);
}

static struct spare *spare_new(struct warden *w)
{
	auto_free struct spare *s = calloc(1, sizeof *s);
	struct call *c = s ? call_new(w) : NULL;

	if (!c)
		return NULL;
	*s = (struct spare){ .w = w, .call = c, .fd = FD_NONE };
	c->spare = s;
	c->job = FIRST_JOB | ++w->last_spare;
	c->watch_idle = w->trace_level != TRACE_FULL;
	return TAKE_PTR(s);
}

/* Whoever runs first is verified, and waits for that in another way. */
static bool may_make(const struct warden *w)
{
	return warden_has(w, HAS_SPARE) && !w->spare && !w->turn && !w->unsealed && w->guarded &&
	       w->state == SANDBOX_RUNNING;
}

void spare_make(struct warden *w)
{
	int fds[FD_ROLES];
	struct spare *s = may_make(w) ? spare_new(w) : NULL;

	if (!s)
		return;
	for (int i = 0; i < FD_ROLES; i++)
		fds[i] = FD_NONE;
	if (prepare(s, fds) == 0 && move(s, SPARE_ASKED))
		w->spare = s;
	else
		call_free(
			s->call); /* the next call is made when it is asked for, or says why not */
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&fds[i]);
}

/* It may have been killed, and init's word for it be on its way. */
static bool waits(const struct spare *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return s->fd >= 0 && poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

static bool serves(const struct spare *s, const struct ask *a)
{
	return s && spare_may_move(s->state, SPARE_TAKEN) && a->op == OP_EXEC && !a->tty &&
	       !a->call_memory && waits(s);
}

struct call *spare_take(struct warden *w, const struct ask *a, struct buf *order)
{
	struct spare *s = w->spare;

	if (!serves(s, a))
		return NULL;
	s->call->id = w->last_call + 1; /* is in the order */
	if (ask_order(a, s->call, order) < 0 || !move(s, SPARE_TAKEN))
		return NULL;
	w->spare = NULL;
	return s->call;
}

int spare_launch(struct call *c, const struct ask *a, const struct buf *order, struct err *e)
{
	int none[FD_ROLES]; /* a limit of its own would need one */

	for (int i = 0; i < FD_ROLES; i++)
		none[i] = FD_NONE;
	if (call_begin(c, a, none, e) < 0)
		return -1;
	if (c->watch)
		watch_call_name(c->watch, c->id, c->event);
	if (send(c->spare->fd, order->data, order->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return err_sys(e, errno, "send the request to its process");
	if (c->spare->inside)
		hand_over(c->spare);
	return 0;
}

void spare_drop(struct warden *w)
{
	if (w->spare && move(w->spare, SPARE_DROPPED))
		close_order(w->spare);
}

/* The group of its call tells what is in it before the child has said a word. */
static bool is_in_group(const struct spare *s, long pid)
{
	long pids[2];
	int n = s->call->group[0] ? s->w->driver->group_pids(s->w->cell, s->call->group, pids,
							     (int)ARRAY_LEN(pids))
				  : 0;

	return n == 1 && pids[0] == pid;
}

bool spare_is(struct warden *w, long pid)
{
	const struct spare *s = w->spare;

	if (!s)
		return false;
	return s->outside ? s->outside == pid : is_in_group(s, pid);
}

bool spare_is_moving(const struct warden *w)
{
	return w->spare && w->spare->state != SPARE_READY;
}
