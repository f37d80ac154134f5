/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spare: a child of init that is made before a client asks for the next call. It has its group
 * and pipes, has done everything that is the same for every command (src/init/child.h), and waits
 * for its order.
 *
 * It saves a call the making of a process and two wake-ups. Without a spare, or if a call cannot
 * use it (a terminal, its own limit, a long request), the call makes its process on request. The
 * spare runs no command and has the rights of init. Root inside can end it, as it can end any
 * command; then there is no spare until the next call is answered.
 *
 * call.h has its states. The warden never waits for the spare: a call may take it before it is
 * ready, and a switch that cannot yet tell it from another process tries again.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "sys/process/fdpass.h"
#include "warden/call/call.h"
#include "warden/features.h"

/* Numbers of spare children in the protocol with init differ from numbers of calls. */
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
	if (s->fd >= 0) /* also if a child of the warden has a copy of it */
		(void)shutdown(s->fd, SHUT_RDWR);
	fds_close_socket(&s->fd);
}

void spare_free(struct spare *s)
{
	(void)move(s, SPARE_NONE);
	if (s->w->spare == s)
		s->w->spare = NULL;
	s->call->spare = NULL;
	/* A child that was taken reads its order from the socket, even after we have closed it. */
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

/* The call has everything it needs from the spare, and is like any other from now on. */
static void hand_over(struct spare *s)
{
	struct call *c = s->call;
	int inside = s->inside;

	spare_free(s);
	call_started(c, inside);
}

/* The child ended before it was ready, and init will report that. */
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
	if (r < 0 || (n == 0 && w->trace_level == TRACE_FULL)) {
		fds_discard(&fd, 1);
		give_up(s);
		return;
	}
	s->inside = said.pid;
	if (n == 1)
		call_watch(s->call, fd);
	else
		s->call->watch_idle = true;
	if (s->state == SPARE_TAKEN) /* its order is already sent */
		hand_over(s);
	else
		(void)move(s, SPARE_READY);
}

/* A packet socket: an order arrives as a whole or not at all. */
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
	c->watch_idle = !w->watch;
	return TAKE_PTR(s);
}

/* The first command is verified, and needs its own gate for that. */
static bool may_make(const struct warden *w)
{
	return warden_has(w, HAS_SPARE) && !w->spare && !w->gen_switch && !w->unsealed &&
	       w->guarded && w->state == SANDBOX_RUNNING;
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
		call_free(s->call); /* the next call makes its own child, or reports the error */
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&fds[i]);
}

/* The child may have been killed, with init's report still in transit. */
static bool waits(const struct spare *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return s->fd >= 0 && poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

static bool serves(const struct spare *s, const struct ask *a)
{
	return s && spare_may_move(s->state, SPARE_TAKEN) && a->op == CALL_EXEC && !a->tty &&
	       !a->call_memory && waits(s);
}

struct call *spare_take(struct warden *w, const struct ask *a, struct buf *order)
{
	struct spare *s = w->spare;

	if (!serves(s, a))
		return NULL;
	s->call->id = w->last_call + 1; /* part of the order */
	if (ask_order(a, s->call, order) < 0 || !move(s, SPARE_TAKEN))
		return NULL;
	w->spare = NULL;
	return s->call;
}

int spare_launch(struct call *c, const struct ask *a, const struct buf *order, struct err *e)
{
	int none[FD_ROLES]; /* a call with its own limit would need a descriptor */

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

/* The call's group shows its processes before the child has reported. */
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
