/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/meter.h"

#include "base/clock.h"
#include "t.h"

static const uint64_t S = NS_PER_S;

static void a_bucket_fills_with_time_and_not_beyond(void)
{
	struct bucket b;

	bucket_init(&b, 1000, 500, 0);
	CHECK(bucket_ready(&b, 0) == 500);
	bucket_take(&b, 500, 0);
	CHECK(bucket_ready(&b, 0) == 0);
	CHECK(bucket_ready(&b, S / 10) == 100);
	CHECK(bucket_ready(&b, S * 3600) == 500);
	bucket_take(&b, 9999, S * 3600);
	CHECK(bucket_ready(&b, S * 3600) == 0);
	CHECK(bucket_ready(&b, S) == 0); /* a clock that goes back yields nothing */
}

static void small_steps_lose_nothing(void)
{
	struct bucket b;
	uint64_t taken = 0, now = 0;

	bucket_init(&b, 3, 3, 0);
	bucket_take(&b, 3, 0);
	for (; now < 10 * S; now += 1013) {
		uint64_t n = bucket_ready(&b, now);

		bucket_take(&b, n, now);
		taken += n;
	}
	CHECK(taken == 29 || taken == 30);
}

static void the_reported_wait_is_exact(void)
{
	struct bucket b;
	uint64_t wait;

	bucket_init(&b, 1000000, 100000, 0);
	bucket_take(&b, 100000, 0);
	wait = bucket_wait_ns(&b, 4096, 0);
	CHECK(wait >= 4096000 && wait <= 4097000);
	CHECK(bucket_ready(&b, wait) >= 4096);
	CHECK(bucket_wait_ns(&b, 4096, wait) == 0);
	CHECK(bucket_wait_ns(&b, UINT64_MAX, 0) <= S);
}

static void no_rate_is_no_limit(void)
{
	struct bucket b;

	bucket_init(&b, 0, 0, 0);
	bucket_take(&b, 1 << 30, 0);
	CHECK(bucket_ready(&b, 0) == UINT64_MAX && bucket_wait_ns(&b, 9, 0) == 0);
	bucket_init(&b, UINT64_MAX, UINT64_MAX, 0);
	CHECK(bucket_ready(&b, UINT64_MAX) > 1ull << 40);
}

static void connections_are_counted(void)
{
	struct policy_limits l = { .connections = 3, .concurrent = 2 };
	struct meter m;

	meter_init(&m, &l, NULL, 0);
	CHECK(meter_open(&m, 0) == METER_OK && meter_open(&m, 0) == METER_OK);
	CHECK(meter_open(&m, 0) == METER_CONCURRENT);
	meter_close(&m);
	CHECK(meter_open(&m, 0) == METER_OK);
	meter_close(&m);
	CHECK(meter_open(&m, 0) == METER_CONNECTIONS);
	CHECK(m.connections == 3 && m.open == 1);
}

static void connections_a_second_are_counted(void)
{
	struct policy_limits l = { .rate_connections = 2, .rate_dns = 1 };
	struct meter m;

	meter_init(&m, &l, NULL, 0);
	CHECK(meter_open(&m, 0) == METER_OK && meter_open(&m, 0) == METER_OK);
	CHECK(meter_open(&m, 0) == METER_RATE);
	CHECK(meter_open(&m, S / 2) == METER_OK);
	CHECK(meter_dns(&m, 0) == METER_OK);
	CHECK(meter_dns(&m, 0) == METER_RATE);
	CHECK(meter_dns(&m, S) == METER_OK);
}

static void byte_budgets_end(void)
{
	struct policy_limits l = { .bytes = 1000, .bytes_up = 600 };
	enum meter_hit hit;
	struct meter m;

	meter_init(&m, &l, NULL, 0);
	CHECK(meter_ready(&m, METER_UP, 0, &hit) == 600 && hit == METER_OK);
	CHECK(meter_ready(&m, METER_DOWN, 0, &hit) == 1000);
	meter_add(&m, METER_UP, 600, 0);
	CHECK(meter_ready(&m, METER_UP, 0, &hit) == 0 && hit == METER_BYTES);
	CHECK(meter_ready(&m, METER_DOWN, 0, &hit) == 400 && hit == METER_OK);
	meter_add(&m, METER_DOWN, 400, 0);
	CHECK(meter_ready(&m, METER_DOWN, 0, &hit) == 0 && hit == METER_BYTES);
}

static void byte_rates_pass(void)
{
	struct policy_limits l = { .rate_down = 100000 };
	enum meter_hit hit;
	struct meter m;

	meter_init(&m, &l, NULL, 0);
	CHECK(meter_ready(&m, METER_DOWN, 0, &hit) == 100000);
	meter_add(&m, METER_DOWN, 100000, 0);
	CHECK(meter_ready(&m, METER_DOWN, 0, &hit) == 0 && hit == METER_RATE);
	CHECK(meter_ready(&m, METER_UP, 0, &hit) == UINT64_MAX);
	CHECK(meter_ready(&m, METER_DOWN, meter_wait_ns(&m, METER_DOWN, 0), &hit) >= 4096);
}

static void a_changed_policy_continues_the_count(void)
{
	struct policy_limits l = { .bytes = 1000, .connections = 5 }, more = { .bytes = 1500 };
	enum meter_hit hit;
	struct meter m, next;

	meter_init(&m, &l, NULL, 0);
	CHECK(meter_open(&m, 0) == METER_OK);
	meter_add(&m, METER_UP, 900, 0);
	meter_init(&next, &more, &m, 0);
	CHECK(meter_ready(&next, METER_UP, 0, &hit) == 600);
	CHECK(next.open == 1 && next.connections == 1);
}

T_MAIN(T(a_bucket_fills_with_time_and_not_beyond), T(small_steps_lose_nothing),
       T(the_reported_wait_is_exact), T(no_rate_is_no_limit), T(connections_are_counted),
       T(connections_a_second_are_counted), T(byte_budgets_end), T(byte_rates_pass),
       T(a_changed_policy_continues_the_count))
