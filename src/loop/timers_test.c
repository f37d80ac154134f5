/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "t.h"

enum { MANY = 3000 };

static struct loop l;
static struct loop_timer timers[MANY];
static uint64_t last_at, last_order, ran;

static uint32_t next_random(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void on_timer(struct loop_timer *t)
{
	(void)t;
}

/* Take the timers as the loop does, and check that each is later than the one before. */
static void take_all_in_order(void)
{
	last_at = last_order = ran = 0;
	while (l.timers) {
		struct loop_timer *t = l.timers;

		CHECK(t->at_ns > last_at || (t->at_ns == last_at && t->order > last_order));
		last_at = t->at_ns;
		last_order = t->order;
		loop_timer_stop(&l, t);
		ran++;
	}
}

static void timers_set_in_any_order_run_by_time(void)
{
	CHECK(loop_init(&l) == 0);
	for (int i = 0; i < MANY; i++)
		loop_timer_set(&l, &timers[i], next_random() % 1000000, on_timer);
	take_all_in_order();
	CHECK(ran == MANY);
	loop_done(&l);
}

static void timers_of_equal_time_run_in_order_of_setting(void)
{
	CHECK(loop_init(&l) == 0);
	for (int i = 0; i < MANY; i++)
		loop_timer_set(&l, &timers[i], UINT64_MAX, on_timer);
	for (int i = 0; i < MANY; i++) {
		CHECK(l.timers == &timers[i]);
		loop_timer_stop(&l, l.timers);
	}
	loop_done(&l);
}

static void stopping_and_moving_timers_keeps_the_order(void)
{
	uint64_t left = 0;

	CHECK(loop_init(&l) == 0);
	for (int i = 0; i < MANY; i++)
		loop_timer_set(&l, &timers[i], next_random() % 1000000, on_timer);
	for (int i = 0; i < 4 * MANY; i++) {
		struct loop_timer *t = &timers[next_random() % MANY];

		if (next_random() % 2)
			loop_timer_stop(&l, t);
		else
			loop_timer_set(&l, t, next_random() % 1000000, on_timer);
	}
	for (int i = 0; i < MANY; i++)
		left += timers[i].at_ns != 0;
	take_all_in_order();
	CHECK(ran == left && left > 0);
	for (int i = 0; i < MANY; i++)
		CHECK(timers[i].at_ns == 0 && !timers[i].child && !timers[i].next);
	loop_done(&l);
}

/* A sorted list would take 20,000 steps per timer: minutes instead of milliseconds. */
static void many_timers_cost_little_each(void)
{
	enum { HUGE_NUMBER = 200000 };
	struct loop_timer *many = calloc(HUGE_NUMBER, sizeof *many);
	uint64_t start = clock_mono_ns();

	CHECK(many && loop_init(&l) == 0);
	for (int i = 0; i < HUGE_NUMBER; i++)
		loop_timer_set(&l, &many[i], 1000000 + next_random(), on_timer);
	for (int i = 0; i < HUGE_NUMBER; i++)
		loop_timer_stop(&l, &many[i]);
	CHECK(!l.timers);
	CHECK(clock_mono_ns() - start < 5000 * NS_PER_MS);
	free(many);
	loop_done(&l);
}

T_MAIN(T(timers_set_in_any_order_run_by_time), T(timers_of_equal_time_run_in_order_of_setting),
       T(stopping_and_moving_timers_keeps_the_order), T(many_timers_cost_little_each))
