/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "t.h"

static void the_epoch_is_printed(void)
{
	char out[CLOCK_TEXT_SIZE];

	clock_text(0, out);
	CHECK_STR(out, "1970-01-01T00:00:00.000000Z");
}

static void text_is_utc_with_truncated_microseconds(void)
{
	char out[CLOCK_TEXT_SIZE];

	CHECK(setenv("TZ", "Asia/Tokyo", 1) == 0);
	clock_text(1709210096ull * NS_PER_S + 123456999, out);
	CHECK_STR(out, "2024-02-29T12:34:56.123456Z");
	clock_text(1709210096ull * NS_PER_S + 999999999, out);
	CHECK_STR(out, "2024-02-29T12:34:56.999999Z");
}

static void all_times_have_the_same_text_length(void)
{
	char out[CLOCK_TEXT_SIZE];

	clock_text(UINT64_MAX, out);
	CHECK(strlen(out) == CLOCK_TEXT_SIZE - 1);
}

static void the_monotonic_clock_does_not_go_back(void)
{
	uint64_t last = clock_mono_ns();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = clock_mono_ns();

		CHECK(now >= last);
		last = now;
	}
}

static void the_coarse_clock_is_never_ahead(void)
{
	for (int i = 0; i < 10000; i++) {
		uint64_t coarse = clock_coarse_ns();

		CHECK(coarse <= clock_real_ns());
		CHECK(coarse > 0);
	}
}

T_MAIN(T(the_epoch_is_printed), T(text_is_utc_with_truncated_microseconds),
       T(all_times_have_the_same_text_length), T(the_monotonic_clock_does_not_go_back),
       T(the_coarse_clock_is_never_ahead))
