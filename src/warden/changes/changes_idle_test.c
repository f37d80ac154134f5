/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_idle.h"

#include "t.h"

#define MS 1000000ull

/* A sample that took no time. */
static void sample(struct changes_idles *x, uint64_t at_ms, uint64_t cpu_us)
{
	changes_idle_sample(x, at_ms * MS, at_ms * MS, cpu_us, true);
}

static bool covers(const struct changes_idles *x, uint64_t from_ms, uint64_t to_ms)
{
	return changes_idle_covers(x, from_ms * MS, to_ms * MS);
}

static void without_samples_nothing_is_known(void)
{
	struct changes_idles x = { 0 };

	CHECK(!covers(&x, 0, 0));
	sample(&x, 100, 5);
	CHECK(!covers(&x, 100, 100));
}

static void equal_samples_with_a_margin_are_idle(void)
{
	struct changes_idles x = { 0 };

	sample(&x, 100, 5);
	sample(&x, 150, 5);
	CHECK(covers(&x, 100, 130) && covers(&x, 120, 120));
	CHECK(!covers(&x, 99, 120));
	CHECK(!covers(&x, 131, 131));
	sample(&x, 200, 5);
	CHECK(covers(&x, 100, 180));
}

static void any_use_of_the_processor_ends_an_idle_time(void)
{
	struct changes_idles x = { 0 };

	sample(&x, 100, 5);
	sample(&x, 200, 5);
	sample(&x, 300, 6);
	sample(&x, 400, 6);
	CHECK(covers(&x, 110, 180) && covers(&x, 300, 380));
	CHECK(!covers(&x, 110, 190) && !covers(&x, 190, 310) && !covers(&x, 250, 250));
}

static void work_by_another_process_ends_it_too(void)
{
	struct changes_idles x = { 0 };

	sample(&x, 100, 5);
	changes_idle_sample(&x, 200 * MS, 200 * MS, 5, false);
	sample(&x, 300, 5);
	CHECK(!covers(&x, 110, 110) && covers(&x, 200, 280));
}

static void a_slow_sample_is_taken_at_its_worse_end(void)
{
	struct changes_idles x = { 0 };

	changes_idle_sample(&x, 100 * MS, 140 * MS, 5, true);
	changes_idle_sample(&x, 200 * MS, 290 * MS, 5, true);
	CHECK(covers(&x, 140, 180));
	CHECK(!covers(&x, 139, 180) && !covers(&x, 140, 181));
}

static void the_oldest_idle_times_are_forgotten(void)
{
	struct changes_idles x = { 0 };

	for (uint64_t i = 0; i < 2 * CHANGES_IDLES; i++) {
		sample(&x, 100 * i, i);
		sample(&x, 100 * i + 50, i);
	}
	CHECK(x.n == CHANGES_IDLES);
	CHECK(!covers(&x, 0, 0) && covers(&x, 100 * CHANGES_IDLES, 100 * CHANGES_IDLES));
	CHECK(covers(&x, 100 * (2 * CHANGES_IDLES - 1), 100 * (2 * CHANGES_IDLES - 1)));
}

T_MAIN(T(without_samples_nothing_is_known), T(equal_samples_with_a_margin_are_idle),
       T(any_use_of_the_processor_ends_an_idle_time), T(work_by_another_process_ends_it_too),
       T(a_slow_sample_is_taken_at_its_worse_end), T(the_oldest_idle_times_are_forgotten))
