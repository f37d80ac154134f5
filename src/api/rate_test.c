/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rate.h"

#include "base/clock.h"
#include "t.h"

enum { START = 1000 };

static void a_pace_gives_its_burst_and_then_its_rate(void)
{
	struct pace b = { 0 };
	uint64_t now = START * NS_PER_S;

	for (int i = 0; i < 6; i++)
		CHECK(pace_take(&b, now, 60, 6, 1) == 0);
	CHECK(pace_take(&b, now, 60, 6, 1) == NS_PER_S);
	CHECK(pace_take(&b, now + NS_PER_S - 1, 60, 6, 1) == 1);
	CHECK(pace_take(&b, now + NS_PER_S, 60, 6, 1) == 0);
	CHECK(pace_take(&b, now + NS_PER_S, 60, 6, 1) > 0);
	/* It never holds more than its burst. */
	now += 1000 * NS_PER_S;
	CHECK(pace_wait(&b, now, 60, 6, 6) == 0 && pace_take(&b, now, 60, 6, 6) == 0);
	CHECK(pace_take(&b, now, 60, 6, 1) > 0);
}

static void several_tokens_are_taken_at_once_or_not_at_all(void)
{
	struct pace b = { 0 };
	uint64_t now = START * NS_PER_S;

	CHECK(pace_take(&b, now, 60, 5, 6) == UINT64_MAX);
	CHECK(pace_take(&b, now, 60, 5, 3) == 0);
	CHECK(pace_take(&b, now, 60, 5, 3) == NS_PER_S);
	CHECK(pace_take(&b, now, 60, 5, 2) == 0);
	/* A rate above the clock's steps is none. */
	CHECK(pace_take(&b, now, UINT64_MAX, UINT64_MAX, 5) > 0); /* still the old debt */
	b = (struct pace){ 0 };
	for (int i = 0; i < 1000; i++)
		CHECK(pace_take(&b, now, UINT64_MAX, UINT64_MAX, 5) == 0);
}

static struct ip address(uint32_t n)
{
	return (struct ip){
		4, { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n }
	};
}

static void an_address_that_fails_often_has_to_wait(void)
{
	static struct strangers s;
	struct ip bad = address(0x0a000001), good = address(0x0a000002), none = { 0 };
	uint64_t now = START * NS_PER_S;

	CHECK(strangers_init(&s) == 0);
	for (int i = 0; i < STRANGER_BURST; i++) {
		CHECK(strangers_wait(&s, &bad, now) == 0);
		strangers_note(&s, &bad, now);
	}
	CHECK(strangers_wait(&s, &bad, now) == 60 * NS_PER_S / STRANGER_PER_MIN);
	CHECK(strangers_wait(&s, &good, now) == 0);
	CHECK(strangers_wait(&s, &bad, now + 60 * NS_PER_S / STRANGER_PER_MIN) == 0);
	for (int i = 0; i < 1000; i++) /* the unix socket has no address */
		strangers_note(&s, &none, now);
	CHECK(strangers_wait(&s, &none, now) == 0);
}

static void addresses_of_one_network_count_together(void)
{
	static struct strangers s;
	struct ip a = { 16, { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 9 } }, b = a, other = a;
	uint64_t now = START * NS_PER_S;

	b.b[15] = 77;
	other.b[7] = 2;
	CHECK(strangers_init(&s) == 0);
	for (int i = 0; i < STRANGER_BURST; i++)
		strangers_note(&s, i % 2 ? &a : &b, now);
	CHECK(strangers_wait(&s, &a, now) > 0 && strangers_wait(&s, &b, now) > 0);
	CHECK(strangers_wait(&s, &other, now) == 0);
}

static void many_strangers_do_not_free_one(void)
{
	static struct strangers s;
	struct ip bad = address(0x0a000001);
	uint64_t now = START * NS_PER_S;

	CHECK(strangers_init(&s) == 0);
	for (int i = 0; i < STRANGER_BURST; i++)
		strangers_note(&s, &bad, now);
	for (uint32_t i = 0; i < 100000; i++) { /* each takes the slot that was quiet for longest */
		struct ip ip = address(0x0b000000 + i);

		strangers_note(&s, &ip, now);
	}
	CHECK(strangers_wait(&s, &bad, now) > 0);
}

T_MAIN(T(a_pace_gives_its_burst_and_then_its_rate),
       T(several_tokens_are_taken_at_once_or_not_at_all),
       T(an_address_that_fails_often_has_to_wait), T(addresses_of_one_network_count_together),
       T(many_strangers_do_not_free_one))
