/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/demand.h"

#include <fcntl.h>

#include "base/clock.h"
#include "ops/pool/ready_key.h"
#include "store/store_test.h"
#include "wire/frame.h"
#include "wire/proto.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct cay cay;
static struct demand d;
static char keys[2][READY_KEY] = { A, B };
static int server = FD_NONE;

static void begin(void)
{
	t_state(&cay.state);
	server = ready_demand_lock(&cay.state, 10);
	CHECK(server >= 0);
}

static void miss(const char *key, size_t n)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(4096);

	CHECK(field_put_c(&recipe, TAG_ENV, "A=1") == 0 &&
	      field_put_u64(&recipe, TAG_TRACE, TRACE_FULL) == 0);
	demand_miss(&cay, key, "host", "toplayer", buf_str(&recipe), n);
}

/* Look at second s. */
static uint32_t wanted_at(uint64_t s, const char *key)
{
	demand_count(&d, &cay.state, keys, ARRAY_LEN(keys), s * NS_PER_S);
	demand_share(&d, 100);
	return demand_wanted(&d, key);
}

static void a_miss_says_what_to_build(void)
{
	auto_done(demand_record_done) struct demand_record r = DEMAND_RECORD_INIT;
	struct str recipe;
	struct field f;

	begin();
	CHECK(demand_read(&cay.state, A, &r) == -ENOENT);
	miss(A, 1);
	CHECK(demand_read(&cay.state, A, &r) == 0);
	CHECK_STR(r.template_, "host");
	CHECK_STR(r.top, "toplayer");
	recipe = buf_str(&r.recipe); /* without what the owner chooses */
	CHECK(field_next(&recipe, &f) > 0 && f.tag == TAG_TRACE && recipe.n == 0);
}

static void without_a_server_nothing_is_noted_or_wanted(void)
{
	uint64_t most;

	begin();
	CHECK(ready_demand_settings(&cay.state, &most) && most == 10);
	CHECK(ready_demand_lock(&cay.state, 5) == -EWOULDBLOCK);
	demand_look(&d, &cay.state, keys, ARRAY_LEN(keys));
	CHECK(d.on && d.n == 0);
	miss(A, 3);
	demand_look(&d, &cay.state, keys, ARRAY_LEN(keys));
	CHECK(demand_wanted(&d, A) > 0 && demand_wanted(&d, A) <= 4);
	fd_close(&server); /* as if it was killed */
	demand_look(&d, &cay.state, keys, ARRAY_LEN(keys));
	CHECK(!d.on && demand_wanted(&d, A) == 0);
	CHECK(!t_there(&cay.state, "ready/demand"));
	miss(B, 1);
	CHECK(!t_there(&cay.state, "ready/" B));
}

static void as_many_as_were_wanted_at_once(void)
{
	begin();
	CHECK(wanted_at(0, A) == 0);
	miss(A, 5);
	CHECK(wanted_at(1, A) == 6 && wanted_at(2, A) == 6);
	miss(A, 2); /* still in the same interval */
	CHECK(wanted_at(3, A) == 8 && wanted_at(12, A) == 8);
	for (uint64_t s = 13; s < 200; s += 11) { /* slow use needs no more */
		miss(A, 1);
		CHECK(wanted_at(s, A) == 8);
	}
}

static void it_is_forgotten_after_two_windows(void)
{
	begin();
	miss(A, 5);
	CHECK(wanted_at(0, A) == 6);
	CHECK(wanted_at(DEMAND_WINDOW_S - 1, A) == 6);
	CHECK(wanted_at(DEMAND_WINDOW_S + 1, A) == 6);
	CHECK(wanted_at(2 * DEMAND_WINDOW_S, A) == 6);
	CHECK(wanted_at(2 * DEMAND_WINDOW_S + 2, A) == 0);
	miss(A, 1);
	CHECK(wanted_at(2 * DEMAND_WINDOW_S + 3, A) == 2);
}

static void claims_count_too(void)
{
	begin();
	miss(A, 1);
	CHECK(wanted_at(0, A) == 2);
	t_put(&cay.state, "ready/" A "/.claims", "....");
	CHECK(wanted_at(1, A) == 6);
}

static void the_maximum_is_shared(void)
{
	begin();
	miss(A, 29);
	miss(B, 9);
	demand_count(&d, &cay.state, keys, ARRAY_LEN(keys), 0);
	demand_share(&d, 20);
	CHECK(demand_wanted(&d, A) == 15 && demand_wanted(&d, B) == 5);
	demand_share(&d, 0);
	CHECK(demand_wanted(&d, A) == 0 && demand_wanted(&d, B) == 0);
	demand_share(&d, 1000);
	CHECK(demand_wanted(&d, A) == 30 && demand_wanted(&d, B) == 10);
}

static void use_before_the_keeper_began_is_past(void)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	begin();
	miss(A, 500);
	CHECK(utimensat(cay.state.fd, "ready/" A "/.record", old, 0) == 0);
	CHECK(wanted_at(0, A) == 2);
}

T_MAIN(T(a_miss_says_what_to_build), T(without_a_server_nothing_is_noted_or_wanted),
       T(as_many_as_were_wanted_at_once), T(it_is_forgotten_after_two_windows), T(claims_count_too),
       T(the_maximum_is_shared), T(use_before_the_keeper_began_is_past))
