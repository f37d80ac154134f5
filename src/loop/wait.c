/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/wait.h"

#include <errno.h>
#include <sys/file.h>

#include "base/clock.h"

enum { LOCK_FIRST_MS = 1, LOCK_LAST_MS = 20 };

struct ending {
	struct loop *loop;
	struct loop_io cancel;
	struct loop_timer deadline;
	int why;
};

static void end_wait(struct ending *end, int why)
{
	if (end->why == 0)
		end->why = why;
	loop_stop(end->loop);
}

static void on_cancel(struct loop_io *io, uint32_t events)
{
	(void)events;
	end_wait(container_of(io, struct ending, cancel), -ECANCELED);
}

static void on_deadline(struct loop_timer *t)
{
	end_wait(container_of(t, struct ending, deadline), -ETIMEDOUT);
}

static int begin_wait(struct ending *end, const struct waiter *w)
{
	uint64_t now = clock_mono_ns();
	int r = 0;

	if (w->cancel_fd >= 0)
		r = loop_add(w->loop, &end->cancel, w->cancel_fd, EPOLLIN, on_cancel);
	if (r == 0 && w->deadline_ns)
		loop_timer_set(w->loop, &end->deadline,
			       w->deadline_ns > now ? w->deadline_ns - now : 0, on_deadline);
	return r;
}

int wait_until(struct waiter *w, const bool *done)
{
	struct ending end = { .loop = w->loop };
	int r;

	if (*done)
		return 0;
	if (w->loop->running)
		return -EBUSY;
	r = begin_wait(&end, w);
	if (r == 0)
		r = loop_run_until(w->loop, done);
	loop_del(w->loop, &end.cancel);
	loop_timer_stop(w->loop, &end.deadline);
	if (r < 0 || *done)
		return r;
	return end.why ? end.why : -ECANCELED;
}

struct pause {
	struct loop_timer timer;
	bool over;
};

static void on_pause_over(struct loop_timer *t)
{
	container_of(t, struct pause, timer)->over = true;
}

int wait_pause(struct waiter *w, uint64_t pause_ns)
{
	struct pause p = { 0 };
	int r;

	if (w->loop->running)
		return -EBUSY;
	loop_timer_set(w->loop, &p.timer, pause_ns, on_pause_over);
	r = wait_until(w, &p.over);
	loop_timer_stop(w->loop, &p.timer);
	return r;
}

int wait_lock(struct waiter *w, int fd)
{
	for (uint64_t ms = LOCK_FIRST_MS;; ms = ms * 2 < LOCK_LAST_MS ? ms * 2 : LOCK_LAST_MS) {
		int r;

		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		r = wait_pause(w, ms * NS_PER_MS);
		if (r < 0)
			return r;
	}
}
