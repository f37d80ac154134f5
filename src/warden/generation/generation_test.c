/* SPDX-License-Identifier: Apache-2.0 */
/* From one generation to the next: each transition, each failure, each order of messages. */
#include <errno.h>
#include <signal.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static void begin(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ .mounts = 2 });
	if (fx_version != 2)
		fx_lease(me);
}

static void ask_snapshot(struct fx_client *c, uint32_t chan, const char *layer)
{
	FX_SEND(c, MSG_C_SWITCH, chan, { TAG_SEAL, 0, layer }, { TAG_SNAPSHOT, 0, "snap" });
}

static void ask_rollback(struct fx_client *c, uint32_t chan, bool force)
{
	FX_SEND(c, MSG_C_SWITCH, chan, { TAG_FORCE, force, NULL }, { TAG_SNAPSHOT, 0, "snap" });
}

/* The sandbox is in its first generation, and can still be switched. */
static void check_as_before(const char *file)
{
	char path[64];

	(void)snprintf(path, sizeof path, "upper/0/%s", file);
	fx_settle();
	CHECK(!fx.ended && !fx.w->gen_switch && fx.w->cell->generation == 0 && fake.live == 0);
	CHECK(fx_exists(path) && !fx_exists("next") && fx.w->spec.nlayers == 0);
	memset(fake.fail, 0, sizeof fake.fail);
	fake.init.rows = NULL;
	fake.others = 0;
	ask_snapshot(me, 99, "layer00099");
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_SEALED);
	CHECK(fx.w->cell->generation == 1);
}

static void a_snapshot_seals_what_was_changed(void)
{
	const struct fx_frame *f;

	begin();
	fx_touch(0, "file");
	ask_snapshot(me, 5, "layer00001");
	f = fx_await(me, MSG_C_SWITCHED);
	CHECK(f->chan == 5 && fx_number(f, TAG_SEALED) == SWITCH_SEALED);
	CHECK(fx_exists("../../layers/layer00001/0/file") && !fx_exists("upper/0/file"));
	CHECK(fx_exists("upper/0") && fx_exists("upper/1") && !fx_exists("next"));
	CHECK(fx_exists("top") && fx.w->spec.nlayers == 1 && fx.w->cell->generation == 1);
	fx_end();
}

static void where_nothing_was_changed_nothing_is_made(void)
{
	begin();
	ask_snapshot(me, 1, "layer00001");
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_UNCHANGED);
	CHECK(fake.count[FAKE_RENEW] == 0 && fx.w->spec.nlayers == 0);
	fx_end();
}

static void a_rollback_drops_what_was_changed(void)
{
	begin();
	fx_touch(0, "file");
	ask_rollback(me, 1, false);
	(void)fx_await(me, MSG_C_SWITCHED);
	CHECK(!fx_exists("upper/0/file") && fx.w->spec.nlayers == 0 && fake.live <= 1);
	fx_end();
}

static void a_driver_that_cannot_renew_changes_nothing(void)
{
	begin();
	fx_touch(0, "file");
	fake.fail[FAKE_RENEW] = EIO;
	ask_snapshot(me, 1, "layer00001");
	fx_await_error(me, "renew a fake");
	check_as_before("file");
	fx_end();
}

static void an_order_that_cannot_be_given_is_undone(void)
{
	begin();
	fx_touch(0, "file");
	fake.fail[FAKE_ENTER] = EPIPE;
	ask_snapshot(me, 1, "layer00001");
	fx_await_error(me, "enter a fake");
	CHECK(fake.count[FAKE_STAY] == 1);
	check_as_before("file");
	fx_end();
}

static void an_init_that_cannot_enter_is_believed(void)
{
	struct fake_row rows[] = {
		{ MSG_ENTER, MSG_ENTERED, { { TAG_ERRNO, EPERM, NULL } }, 1, 0, 0 }, { 0 }
	};

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	fx_await_error(me, "enter the next generation");
	check_as_before("file");
	fx_end();
}

static void an_init_that_is_busy_is_asked_again(void)
{
	struct fake_row rows[] = {
		{ MSG_ENTER, MSG_ENTERED, { { TAG_ERRNO, EBUSY, NULL } }, 1, 3, 0 }, { 0 }
	};

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_SEALED);
	CHECK(fake.count[FAKE_ENTER] == 4 && fake.count[FAKE_STAY] == 0);
	fx_end();
}

static void an_init_that_stays_busy_is_given_up(void)
{
	struct fake_row rows[] = {
		{ MSG_ENTER, MSG_ENTERED, { { TAG_ERRNO, EBUSY, NULL } }, 1, 0, 0 }, { 0 }
	};

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	fx_await_error(me, "running");
	check_as_before("file");
	fx_end();
}

static void an_init_that_never_answers_does_not_hold_up_an_end(void)
{
	struct fake_row rows[] = { { MSG_ENTER, 0, { { 0 } }, 0, 0, 0 }, { 0 } };

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	fx_settle();
	CHECK(fx.w->gen_switch && fx.w->gen_switch->ordered);
	FX_SEND(fx_connect(false), MSG_C_DESTROY, 2, { TAG_REASON, 0, "test" });
	fx_await_end("killed");
	fx_end();
}

static void answers_that_nobody_asked_for_are_dropped(void)
{
	const struct conn_field good = { TAG_ERRNO, 0, NULL };

	begin();
	CHECK(fake_say(MSG_ENTERED, 0, &good, 1) == 0);
	fx_settle();
	CHECK(!fx.ended && fx.w->cell->generation == 0);
	fx_touch(0, "file");
	ask_snapshot(me, 1, "layer00001");
	(void)fx_await(me, MSG_C_SWITCHED);
	CHECK(fake_say(MSG_ENTERED, 0, &good, 1) == 0 && fake_say(MSG_ENTERED, 9, &good, 1) == 0);
	fx_settle();
	CHECK(!fx.ended && fx.w->cell->generation == 1);
	fx_end();
}

/* Both answers are in the warden's input when it reads the first. */
static void an_answer_that_comes_twice_counts_once(void)
{
	struct fake_row rows[] = { { MSG_ENTER, 0, { { 0 } }, 0, 0, 0 }, { 0 } };
	const struct conn_field good = { TAG_ERRNO, 0, NULL };

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	fx_settle();
	CHECK(fake_say(MSG_ENTERED, 0, &good, 1) == 0 && fake_say(MSG_ENTERED, 0, &good, 1) == 0);
	(void)fx_await(me, MSG_C_SWITCHED);
	fx_settle();
	CHECK(!fx.ended && fx.w->cell->generation == 1 && !fx_came(me, MSG_C_SWITCHED));
	fx_end();
}

/* Version 2: the second request is in the warden's input during the first switch. */
static void two_switches_in_one_write_are_done_one_after_the_other(void)
{
	fx_version = 2;
	begin();
	fx_touch(0, "file");
	ask_snapshot(me, 1, "layer00001");
	ask_rollback(me, 2, false);
	CHECK(fx_await(me, MSG_C_SWITCHED)->chan == 1);
	CHECK(fx_await(me, MSG_C_SWITCHED)->chan == 2);
	fx_settle();
	CHECK(!fx.ended && !fx.w->gen_switch && fx.w->spec.nlayers == 0 &&
	      fx.w->cell->generation == 2);
	fx_end();
}

static void of_two_switches_in_one_write_the_second_is_refused(void)
{
	begin();
	fx_touch(0, "file");
	ask_snapshot(me, 1, "layer00001");
	ask_rollback(me, 2, false);
	fx_await_error(me, "under way");
	CHECK(fx_await(me, MSG_C_SWITCHED)->chan == 1);
	fx_end();
}

static void a_call_in_the_same_write_runs_in_the_next_generation(void)
{
	begin();
	fx_touch(0, "file");
	ask_snapshot(me, 1, "layer00001");
	fx_exec(me, 2);
	(void)fx_await(me, MSG_C_SWITCHED);
	fx_settle();
	CHECK(fake_count(MSG_RUN) == 1 && fx.w->cell->generation == 1);
	fx_end();
}

static void another_client_is_refused_meanwhile(void)
{
	struct fake_row rows[] = { { MSG_ENTER, 0, { { 0 } }, 0, 0, 0 }, { 0 } };
	struct fx_client *other;

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	other = fx_connect(false);
	fx_settle();
	ask_snapshot(other, 1, "layer00002");
	fx_await_error(other, "busy");
	FX_SEND(other, MSG_C_PAUSE, 2, { TAG_REASON, 0, "x" });
	fx_await_error(other, "busy");
	FX_SEND(me, MSG_C_PAUSE, 3, { TAG_REASON, 0, "x" });
	fx_await_error(me, "under way");
	fx_end();
}

static void who_asked_may_be_gone_before_it_is_done(void)
{
	struct fake_row rows[] = { { MSG_ENTER, 0, { { 0 } }, 0, 0, 0 }, { 0 } };
	const struct conn_field good = { TAG_ERRNO, 0, NULL };
	struct fx_client *other;

	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	fx_touch(0, "file");
	fake.init.rows = rows;
	other = fx_connect(false);
	fx_lease(other);
	ask_snapshot(other, 1, "layer00001");
	fx_settle();
	fx_hang_up(other);
	fx_settle();
	CHECK(fake_say(MSG_ENTERED, 0, &good, 1) == 0);
	fx_settle();
	CHECK(!fx.ended && fx.w->cell->generation == 1 && !fx.w->gen_switch);
	fx_end();
}

static void init_may_end_in_the_middle(void)
{
	struct fake_row rows[] = { { MSG_ENTER, 0, { { 0 } }, 0, 0, 0 }, { 0 } };

	begin();
	fx_touch(0, "file");
	fake.init.rows = rows;
	ask_snapshot(me, 1, "layer00001");
	fx_settle();
	conn_done(&fake.init.conn);
	fx_await_end("init ended");
	fx_end();
}

static void what_cannot_be_sealed_ends_the_sandbox(void)
{
	begin();
	fx_touch(0, "file");
	fake.fail[FAKE_SEAL] = EIO;
	ask_snapshot(me, 1, "layer00001");
	(void)fx_await(me, MSG_C_SWITCHED);
	fx_await_end("files that were sealed cannot be made read-only");
	fx_end();
}

static void while_something_writes_it_is_not_sealed(void)
{
	begin();
	fx_touch(0, "file");
	fake.fail[FAKE_SEAL] = EBUSY;
	ask_snapshot(me, 1, "layer00001");
	(void)fx_await(me, MSG_C_SWITCHED);
	fx_await_end("something inside still writes to files that were sealed");
	fx_end();
}

static void a_rollback_is_refused_while_calls_run(void)
{
	begin();
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fake.others = 2;
	ask_rollback(me, 2, false);
	fx_await_error(me, "running: 1");
	ask_rollback(me, 3, true);
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_STATUS) == SIGKILL);
	(void)fx_await(me, MSG_C_SWITCHED);
	fx_end();
}

static void a_snapshot_beside_calls_is_a_copy(void)
{
	begin();
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fx_touch(0, "file");
	fake.others = 2;
	ask_snapshot(me, 2, "layer00001");
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_COPIED);
	CHECK(fake.count[FAKE_FREEZE] == 1 && fake.count[FAKE_THAW] == 1);
	CHECK(fx_exists("../../layers/layer00001/0/file") && fx_exists("upper/0/file"));
	CHECK(fake.count[FAKE_RENEW] == 0);
	fx_end();
}

static void calls_that_cannot_be_frozen_go_on(void)
{
	begin();
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fx_touch(0, "file");
	fake.others = 2;
	fake.fail[FAKE_FREEZE] = ETIME;
	ask_snapshot(me, 2, "layer00001");
	fx_await_error(me, "make the commands stand still");
	CHECK(fake.count[FAKE_THAW] == 1 && !fx.w->gen_switch);
	fx_end();
}

static void processes_that_were_left_make_it_wait_and_then_copy(void)
{
	begin();
	fx_touch(0, "file");
	fake.others = 2;
	ask_snapshot(me, 1, "layer00001");
	CHECK(fx_number(fx_await(me, MSG_C_SWITCHED), TAG_SEALED) == SWITCH_COPIED);
	ask_rollback(me, 2, false);
	fx_await_error(me, "processes that calls have left are running");
	fx_end();
}

static void bad_requests_are_refused_and_change_nothing(void)
{
	static const char *const bad[] = { "short", "UPPER0001", "../../../../etc", "layer0000/1" };

	begin();
	fx_touch(0, "file");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ask_snapshot(me, 1, bad[i]);
		(void)fx_await(me, MSG_C_ERROR);
	}
	CHECK(fx_send_raw(me, MSG_C_SWITCH, 1, STR("xx")) == 0);
	fx_await_error(me, "bad request");
	check_as_before("file");
	fx_end();
}

T_MAIN(T(a_snapshot_seals_what_was_changed), T(where_nothing_was_changed_nothing_is_made),
       T(a_rollback_drops_what_was_changed), T(a_driver_that_cannot_renew_changes_nothing),
       T(an_order_that_cannot_be_given_is_undone), T(an_init_that_cannot_enter_is_believed),
       T(an_init_that_is_busy_is_asked_again), T(an_init_that_stays_busy_is_given_up),
       T(an_init_that_never_answers_does_not_hold_up_an_end),
       T(answers_that_nobody_asked_for_are_dropped), T(an_answer_that_comes_twice_counts_once),
       T(two_switches_in_one_write_are_done_one_after_the_other),
       T(of_two_switches_in_one_write_the_second_is_refused),
       T(a_call_in_the_same_write_runs_in_the_next_generation),
       T(another_client_is_refused_meanwhile), T(who_asked_may_be_gone_before_it_is_done),
       T(init_may_end_in_the_middle), T(what_cannot_be_sealed_ends_the_sandbox),
       T(while_something_writes_it_is_not_sealed), T(a_rollback_is_refused_while_calls_run),
       T(a_snapshot_beside_calls_is_a_copy), T(calls_that_cannot_be_frozen_go_on),
       T(processes_that_were_left_make_it_wait_and_then_copy),
       T(bad_requests_are_refused_and_change_nothing))
