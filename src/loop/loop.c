/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/clock.h"

enum { BATCH = 32, BUSY_TURNS = 8 };

int loop_init(struct loop *l)
{
	*l = (struct loop){ .epfd = epoll_create1(EPOLL_CLOEXEC) };
	return l->epfd < 0 ? -errno : 0;
}

void loop_done(struct loop *l)
{
	fd_close(&l->epfd);
}

int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	     void (*fn)(struct loop_io *, uint32_t))
{
	struct epoll_event ev = { .events = events, .data.ptr = io };

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		io->fd = FD_NONE;
		return -errno;
	}
	*io = (struct loop_io){ .fd = fd, .events = events, .fn = fn };
	return 0;
}

int loop_mod(struct loop *l, struct loop_io *io, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = io };

	if (io->events == events)
		return 0;
	if (epoll_ctl(l->epfd, EPOLL_CTL_MOD, io->fd, &ev) < 0)
		return -errno;
	io->events = events;
	return 0;
}

void loop_del(struct loop *l, struct loop_io *io)
{
	if (!io->fn || io->fd < 0)
		return;
	(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	io->fd = FD_NONE;
	for (int i = 0; i < l->batch_len; i++)
		if (l->batch[i].data.ptr == io)
			l->batch[i].data.ptr = NULL;
}

/* Milliseconds until the first timer, rounded up so that the timer is due when we wake. */
static int wait_ms(const struct loop *l)
{
	uint64_t now, ms;

	if (!l->timers)
		return -1;
	now = clock_mono_ns();
	if (l->timers->at_ns <= now)
		return 0;
	ms = (l->timers->at_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 3600 * 1000 ? 3600 * 1000 : (int)ms;
}

static void run_timers(struct loop *l)
{
	uint64_t now = clock_mono_ns();

	while (!l->stop && l->timers && l->timers->at_ns <= now) {
		struct loop_timer *t = l->timers;

		loop_timer_stop(l, t);
		t->fn(t);
	}
}

/* evs[0] to evs[at - 1] are the events that go first. */
static void put_first(struct epoll_event *evs, int n)
{
	for (int i = 0, at = 0; i < n; i++)
		if (((struct loop_io *)evs[i].data.ptr)->first) {
			struct epoll_event ev = evs[i];

			evs[i] = evs[at];
			evs[at++] = ev;
		}
}

static void run_batch(struct loop *l, struct epoll_event *evs, int n)
{
	put_first(evs, n);
	l->batch = evs;
	l->batch_len = n;
	for (int i = 0; i < n && !l->stop; i++) {
		struct loop_io *io = evs[i].data.ptr;

		if (io)
			io->fn(io, evs[i].events);
	}
	l->batch_len = 0;
	l->batch = NULL;
}

/* Do the chores after so many busy turns at the latest. */
static void do_chores(struct loop *l, int n)
{
	if (n > 0 && ++l->busy_turns < BUSY_TURNS)
		return;
	l->busy_turns = 0;
	l->chores = false;
	l->idle(l);
}

static int turn(struct loop *l)
{
	struct epoll_event evs[BATCH];
	bool chores = l->chores; /* chores from before this turn */
	int n = epoll_wait(l->epfd, evs, BATCH, chores ? 0 : wait_ms(l));

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0)
		run_batch(l, evs, n);
	if (l->timers)
		run_timers(l);
	if (chores && !l->stop)
		do_chores(l, n);
	if (l->turned && !l->stop)
		l->turned(l);
	return 0;
}

int loop_run_until(struct loop *l, const bool *done)
{
	int r = 0;

	if (l->running)
		return -EBUSY;
	l->stop = false;
	l->running = true;
	while (r == 0 && !l->stop && !*done)
		r = turn(l);
	l->running = false;
	return r;
}

int loop_run(struct loop *l)
{
	static const bool never = false;

	return loop_run_until(l, &never);
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
