/* SPDX-License-Identifier: Apache-2.0 */
/* The child that waits for the next call: every state, and every way out of it. */
#include <errno.h>
#include <sys/socket.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static struct fake_run *spare_run(void)
{
	CHECK(fx.w->spare);
	return fake_run_of(fx.w->spare->call->job);
}

/* Run one call; late: the next spare child is not ready yet. */
static void begin(bool late)
{
	fx_begin();
	fake.init.late = late;
	fx_build(&(struct fx_want){ 0 });
	fx_lease(me);
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	CHECK(!fx.w->spare);
	fake_exit(fake_last_run(), 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_settle();
}

static enum spare_state state(void)
{
	return fx.w->spare ? fx.w->spare->state : SPARE_NONE;
}

/* True if the spare child has received an order. */
static bool has_order(const struct fake_run *r)
{
	char order[256];

	return recv(r->fds[FD_ORDER], order, sizeof order, MSG_DONTWAIT) > 0;
}

static void only_listed_moves_are_allowed(void)
{
	static const char allowed[SPARE_STATES][SPARE_STATES + 1] = {
		[SPARE_NONE] = "-A---",	 [SPARE_ASKED] = "N-RTD",   [SPARE_READY] = "N--TD",
		[SPARE_TAKEN] = "N----", [SPARE_DROPPED] = "N----",
	};

	for (int from = 0; from < SPARE_STATES; from++)
		for (int to = 0; to < SPARE_STATES; to++)
			CHECK(spare_may_move((enum spare_state)from, (enum spare_state)to) ==
			      (allowed[from][to] != '-'));
}

static void a_ready_child_gets_the_next_call(void)
{
	struct fake_run *r;

	begin(false);
	CHECK(state() == SPARE_READY);
	r = spare_run();
	fx_exec(me, 2);
	CHECK(fx_number(fx_await(me, MSG_C_STARTED), TAG_PID) == 7);
	CHECK(has_order(r) && fake_count(MSG_RUN) == 1 && state() == SPARE_NONE);
	fake_exit(r, 3 << 8);
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_STATUS) == 3 << 8);
	fx_settle();
	CHECK(state() == SPARE_READY);
	fx_end();
}

static void a_call_may_take_it_before_it_is_ready(void)
{
	struct fake_run *r;

	begin(true);
	CHECK(state() == SPARE_ASKED);
	r = spare_run();
	fx_exec(me, 2);
	fx_settle();
	CHECK(state() == SPARE_NONE && has_order(r) && !fx_came(me, MSG_C_STARTED));
	fake_ready(r);
	CHECK(fx_number(fx_await(me, MSG_C_STARTED), TAG_PID) == 7);
	fake_exit(r, 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_end();
}

/* While one call has a child that is not ready, another child can be made for the next call. */
static void two_can_be_on_their_way(void)
{
	struct fake_run *first;

	begin(true);
	first = spare_run();
	FX_SEND(me, MSG_C_EXEC, 2, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	fx_exec(me, 3);
	fx_settle();
	CHECK(state() == SPARE_NONE);
	fake_exit(fake_last_run(), 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_settle();
	CHECK(state() == SPARE_ASKED && spare_run() != first);
	fake_ready(spare_run());
	fake_ready(fake_run_of(first->job));
	CHECK(fx_await(me, MSG_C_STARTED)->chan == 3);
	CHECK(state() == SPARE_READY);
	fx_end();
}

static void a_taken_child_that_dies_unready_ends_its_call(void)
{
	struct fake_run *r;

	begin(true);
	r = spare_run();
	fx_exec(me, 2);
	fx_settle();
	fake_exit(r, 9);
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_STATUS) == 9);
	fx_settle();
	CHECK(!fx.w->calls && fx.w->running == 0);
	fx_end();
}

static void one_that_ends_by_itself_is_forgotten(void)
{
	for (int late = 0; late < 2; late++) {
		begin(late);
		fake_exit(spare_run(), 0);
		fx_settle();
		CHECK(state() == SPARE_NONE && !fx.ended);
		fx_exec(me, 2);
		(void)fx_await(me, MSG_C_STARTED);
		CHECK(fake_count(MSG_RUN) == 2);
		fx_end();
	}
}

/* Its socket is closed, and init has not reported the end yet. */
static void one_that_has_hung_up_is_not_taken(void)
{
	begin(false);
	fd_close(&spare_run()->fds[FD_ORDER]);
	fx_exec(me, 2);
	(void)fx_await(me, MSG_C_STARTED);
	CHECK(fake_count(MSG_RUN) == 2);
	fx_end();
}

static void words_that_are_too_short_are_no_word(void)
{
	begin(true);
	CHECK(send(spare_run()->fds[FD_ORDER], "x", 1, MSG_NOSIGNAL) == 1);
	fx_settle();
	CHECK(state() == SPARE_DROPPED);
	fx_exec(me, 2);
	(void)fx_await(me, MSG_C_STARTED);
	CHECK(fake_count(MSG_RUN) == 2);
	fx_end();
}

static void a_call_that_cannot_use_it_leaves_it(void)
{
	begin(false);
	FX_SEND(me, MSG_C_EXEC, 2, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	CHECK(state() == SPARE_READY);
	FX_SEND(me, MSG_C_EXEC, 3, { TAG_ARG, 0, "sh" }, { TAG_CALL_MEMORY, 1 << 20, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	CHECK(state() == SPARE_READY);
	fx_end();
}

/* The spare is the only process, and the kernel reports its pid: our own. */
static void a_switch_drops_it_and_goes_on(void)
{
	begin(false);
	fx_touch(0, "file");
	fake.others = 1;
	fake.other_pid = getpid();
	FX_SEND(me, MSG_C_SWITCH, 2, { TAG_SEAL, 0, "layer00001" });
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_SEALED);
	CHECK(fake.count[FAKE_FREEZE] == 0);
	fx_end();
}

/* The warden cannot identify it yet, and does not block: it tries again. */
static void a_switch_waits_until_it_is_known(void)
{
	begin(true);
	fx_touch(0, "file");
	fake.others = 1;
	fake.other_pid = getpid();
	FX_SEND(me, MSG_C_SWITCH, 2, { TAG_SEAL, 0, "layer00001" });
	fx_settle();
	CHECK(fx.w->gen_switch && !fx.w->gen_switch->ordered);
	FX_SEND(me, MSG_C_PING, 3, { TAG_REASON, 0, "x" });
	(void)fx_await(me, MSG_C_PONG);
	fake_ready(spare_run());
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_SEALED);
	CHECK(fake.count[FAKE_FREEZE] == 0);
	fx_end();
}

/* After a second, a spare that never gets ready counts as an ordinary process. */
static void a_switch_does_not_wait_for_ever(void)
{
	begin(true);
	fx_touch(0, "file");
	fake.others = 1;
	fake.other_pid = getpid();
	FX_SEND(me, MSG_C_SWITCH, 2, { TAG_SEAL, 0, "layer00001" });
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_COPIED);
	fx_end();
}

static void it_goes_with_the_sandbox(void)
{
	for (int late = 0; late < 2; late++) {
		begin(late);
		fx_end();
	}
}

static void without_the_feature_there_is_none(void)
{
	fx_begin();
	fake.driver.has &= ~(unsigned)HAS_SPARE;
	fx_build(&(struct fx_want){ 0 });
	for (uint32_t i = 1; i < 3; i++) {
		fx_exec(me, i);
		(void)fx_await(me, MSG_C_STARTED);
		fake_exit(fake_last_run(), 0);
		(void)fx_await(me, MSG_C_EXIT);
	}
	fx_settle();
	CHECK(state() == SPARE_NONE && fake_count(MSG_STAND_BY) == 0);
	fx_end();
}

T_MAIN(T(only_listed_moves_are_allowed), T(a_ready_child_gets_the_next_call),
       T(a_call_may_take_it_before_it_is_ready), T(two_can_be_on_their_way),
       T(a_taken_child_that_dies_unready_ends_its_call), T(one_that_ends_by_itself_is_forgotten),
       T(one_that_has_hung_up_is_not_taken), T(words_that_are_too_short_are_no_word),
       T(a_call_that_cannot_use_it_leaves_it), T(a_switch_drops_it_and_goes_on),
       T(a_switch_waits_until_it_is_known), T(a_switch_does_not_wait_for_ever),
       T(it_goes_with_the_sandbox), T(without_the_feature_there_is_none))
