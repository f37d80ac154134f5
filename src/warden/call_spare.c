/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next call, made ready before anybody asks for it: its group, its pipes, and a child of init
 * that has done what is the same for every command (src/init/child.h) and waits for one.
 *
 *   made, once a call is answered -> ready -> taken by a call, which is like any other from then on
 *                                      `---> dropped, before the file systems are changed
 *
 * It saves a call the making of a process and two wake-ups. Where it is not there, or does not do
 * (a terminal, a limit of its own, a long request), a call is made as it is asked for. It runs
 * nothing, and what it has is what init has: root inside can end it, as it can end any command,
 * and then there is none until the next call is answered.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "sys/fdpass.h"
#include "warden/call.h"

/* At init, numbers of calls that were made ready are others than those of calls. */
#define FIRST_JOB (1u << 31)

enum { READY_WAIT_MS = 1000 }; /* on a machine that is busy with others */

static void on_ready(struct loop_io *io, uint32_t events)
{
	struct call *c = container_of(io, struct call, report_io);
	struct warden *w = c->w;
	struct stand_by_ready said;
	int fd = FD_NONE, n = 0;
	int r = fdpass_recv_from(c->report_fd, &said, sizeof said, &fd, 1, &n, &c->outside);

	(void)events;
	loop_del(&w->loop, &c->report_io);
	if (r < 0 || n != (w->trace_level == TRACE_FULL)) {
		/* It ended before it came so far, and init will say so. */
		fd_close(&fd);
		fd_close(&c->report_fd);
		c->watch_idle = true;
		call_check_done(c);
		return;
	}
	c->inside = said.pid;
	if (n == 1)
		call_watch(c, fd);
	if (c != w->spare) { /* its order is there already */
		fd_close(&c->report_fd);
		call_started(c, c->inside);
	}
}

/* A packet is a message: none can be half there. */
static int open_order(struct call *c, int fds[FD_ROLES])
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->report_fd = pair[0];
	fds[FD_ORDER] = pair[1];
	r = fdpass_ask_sender(c->report_fd);
	return r < 0 ? r : loop_add(&c->w->loop, &c->report_io, c->report_fd, EPOLLIN, on_ready);
}

static int prepare(struct call *c, int fds[FD_ROLES])
{
	struct err ignored;
	int r = call_io_open(c, 0, 0, fds, &ignored) < 0 ? -EIO : open_order(c, fds);

	if (r == 0)
		r = call_open_group(c, fds);
	return r < 0 ? r : ask_send(NULL, c, fds);
}

void spare_make(struct warden *w)
{
	int fds[FD_ROLES];
	struct call *c;

	/* Whoever runs first is looked at, and waits for it in another way. */
	if (w->spare || w->turn || w->coming || w->unsealed || !w->guarded ||
	    w->state != SANDBOX_RUNNING)
		return;
	c = call_new(w);
	if (!c)
		return;
	for (int i = 0; i < FD_ROLES; i++)
		fds[i] = FD_NONE;
	c->job = FIRST_JOB | ++w->last_spare;
	c->watch_idle = w->trace_level != TRACE_FULL;
	if (prepare(c, fds) == 0)
		w->spare = c;
	else
		call_free(c); /* the next call is made when it is asked for, or says why not */
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&fds[i]);
}

/* It may have been killed, and init's word for it be on its way. */
static bool waits(const struct call *c)
{
	struct pollfd p = { .fd = c->report_fd, .events = POLLIN };

	return c->report_fd >= 0 && poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

static bool serves(const struct call *c, const struct ask *a)
{
	return c && a->op == OP_EXEC && !a->tty && !a->call_memory && waits(c);
}

struct call *spare_take(struct warden *w, const struct ask *a, struct buf *order)
{
	struct call *c = w->spare;

	if (!serves(c, a))
		return NULL;
	c->id = w->last_call + 1; /* is in the order */
	if (ask_order(a, c, order) < 0)
		return NULL;
	w->spare = NULL;
	return c;
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
	if (send(c->report_fd, order->data, order->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return err_sys(e, errno, "send the request to its process");
	if (c->inside) {
		fd_close(&c->report_fd);
		call_started(c, c->inside);
	}
	return 0;
}

void spare_drop(struct warden *w)
{
	if (!w->spare)
		return;
	loop_del(&w->loop, &w->spare->report_io);
	if (w->spare->report_fd >= 0) /* also where a child of ours has a copy of it */
		(void)shutdown(w->spare->report_fd, SHUT_RDWR);
	fd_close(&w->spare->report_fd);
}

/* It comes within the millisecond in which it was made. */
static void await_ready(struct call *c)
{
	struct pollfd p = { .fd = c->report_fd, .events = POLLIN };

	if (c->report_fd >= 0 && !c->outside && poll(&p, 1, READY_WAIT_MS) > 0)
		on_ready(&c->report_io, EPOLLIN);
}

bool spare_is(struct warden *w, long pid)
{
	if (!w->spare)
		return false;
	await_ready(w->spare);
	return w->spare->outside == pid;
}
