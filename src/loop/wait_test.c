/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#include "base/clock.h"
#include "t.h"

static struct loop l;
static bool done;
static struct loop_timer timer;

static struct waiter waiter(void)
{
	CHECK(loop_init(&l) == 0);
	return (struct waiter){ .loop = &l, .cancel_fd = FD_NONE };
}

static void on_timer_done(struct loop_timer *t)
{
	(void)t;
	done = true;
}

static void a_condition_that_becomes_true_ends_the_wait(void)
{
	struct waiter w = waiter();

	loop_timer_set(&l, &timer, 1 * NS_PER_MS, on_timer_done);
	CHECK(wait_until(&w, &done) == 0);
	CHECK(done && !l.running);
	loop_done(&l);
}

static void a_true_condition_wins_over_an_expired_deadline(void)
{
	struct waiter w = waiter();

	done = true;
	w.deadline_ns = 1;
	CHECK(wait_until(&w, &done) == 0);
	loop_done(&l);
}

static void the_deadline_ends_the_wait_and_leaves_no_timer(void)
{
	struct waiter w = waiter();
	uint64_t start = clock_mono_ns();

	w.deadline_ns = start + 5 * NS_PER_MS;
	CHECK(wait_until(&w, &done) == -ETIMEDOUT);
	CHECK(clock_mono_ns() - start >= 5 * NS_PER_MS && !l.timers);
	/* With an expired deadline it does not wait at all. */
	CHECK(wait_until(&w, &done) == -ETIMEDOUT && !l.timers);
	loop_done(&l);
}

static void a_readable_cancel_descriptor_ends_every_wait(void)
{
	struct waiter w = waiter();
	auto_close int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	w.cancel_fd = fd;
	CHECK(wait_until(&w, &done) == -ECANCELED);
	CHECK(wait_pause(&w, 1000 * NS_PER_MS) == -ECANCELED);
	CHECK(!l.timers);
	loop_done(&l);
}

static struct waiter *inner;
static int inner_result = 1;

static void on_timer_wait_inside(struct loop_timer *t)
{
	static bool never;

	(void)t;
	inner_result = wait_until(inner, &never);
	CHECK(wait_pause(inner, 0) == -EBUSY);
	done = true;
}

static void a_wait_inside_a_callback_of_the_same_loop_is_refused(void)
{
	struct waiter w = waiter();

	inner = &w;
	loop_timer_set(&l, &timer, 0, on_timer_wait_inside);
	CHECK(wait_until(&w, &done) == 0);
	CHECK(inner_result == -EBUSY);
	loop_done(&l);
}

static void on_timer_stop(struct loop_timer *t)
{
	(void)t;
	loop_stop(&l);
}

static void a_stopped_loop_is_a_cancelled_wait(void)
{
	struct waiter w = waiter();

	loop_timer_set(&l, &timer, 0, on_timer_stop);
	CHECK(wait_until(&w, &done) == -ECANCELED);
	loop_done(&l);
}

static void a_pause_lasts_its_time(void)
{
	struct waiter w = waiter();
	uint64_t start = clock_mono_ns();

	CHECK(wait_pause(&w, 3 * NS_PER_MS) == 0);
	CHECK(clock_mono_ns() - start >= 3 * NS_PER_MS);
	loop_done(&l);
}

static int open_lock(const char *dir)
{
	char path[300];
	int fd;

	(void)snprintf(path, sizeof path, "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	return fd;
}

static int held_fd;

static void on_timer_unlock(struct loop_timer *t)
{
	(void)t;
	CHECK(flock(held_fd, LOCK_UN) == 0);
}

static void wait_lock_ends_with_the_lock_or_the_deadline(void)
{
	struct waiter w = waiter();
	char dir[256];
	int fd;

	t_scratch(dir, sizeof dir);
	fd = open_lock(dir);
	held_fd = open_lock(dir);
	CHECK(flock(held_fd, LOCK_EX) == 0);
	w.deadline_ns = clock_mono_ns() + 5 * NS_PER_MS;
	CHECK(wait_lock(&w, fd) == -ETIMEDOUT);
	w.deadline_ns = 0;
	loop_timer_set(&l, &timer, 5 * NS_PER_MS, on_timer_unlock);
	CHECK(wait_lock(&w, fd) == 0);
	CHECK(flock(held_fd, LOCK_EX | LOCK_NB) < 0);
	CHECK(wait_lock(&w, FD_NONE) == -EBADF);
	t_sweep(t_me);
	loop_done(&l);
}

T_MAIN(T(a_condition_that_becomes_true_ends_the_wait),
       T(a_true_condition_wins_over_an_expired_deadline),
       T(the_deadline_ends_the_wait_and_leaves_no_timer),
       T(a_readable_cancel_descriptor_ends_every_wait),
       T(a_wait_inside_a_callback_of_the_same_loop_is_refused),
       T(a_stopped_loop_is_a_cancelled_wait), T(a_pause_lasts_its_time),
       T(wait_lock_ends_with_the_lock_or_the_deadline))
