/* SPDX-License-Identifier: Apache-2.0 */
/* A switch that is asked for together with the call. */
#include "cli/session_fixture.h"
#include "store/snapshots.h"

static int times_done;
static uint64_t result_done;

static int takes_it(void *ctx, const struct frame *answer, struct err *why)
{
	struct str body = answer->body;
	struct field f;

	(void)why;
	CHECK(ctx == &times_done && field_next(&body, &f) == 1 && f.tag == TAG_SEALED);
	CHECK(field_u64(f, &result_done) == 0);
	times_done++;
	return 0;
}

static int cannot_keep_it(void *ctx, const struct frame *answer, struct err *why)
{
	(void)answer;
	++*(int *)ctx;
	return err_set(why, ERR_FAILED, "it cannot be kept");
}

static struct session_first *ask_first(int (*done)(void *, const struct frame *, struct err *))
{
	static struct buf request = BUF_INIT(256);
	static struct buf call = BUF_INIT(256);
	static struct session_first first;

	times_done = 0;
	buf_clear(&request);
	CHECK(field_put_c(&request, TAG_SEAL, "layer") == 0);
	buf_clear(&call);
	CHECK(field_put_u64(&call, TAG_SWITCHING, 1) == 0);
	first = (struct session_first){
		.request = &request, .call = &call, .done = done, .ctx = &times_done
	};
	return &first;
}

static void add_switched(uint64_t result)
{
	add_number(MSG_C_SWITCHED, TAG_SEALED, result);
}

/* early: only where there is a new layer. */
static void expect_call(bool early)
{
	struct frame f;
	struct field field;

	CHECK(next(&f) && f.type == MSG_C_EXEC && f.chan == CHAN);
	CHECK(field_next(&f.body, &field) == 1 && (field.tag == TAG_SWITCHING) == early);
}

static void expect_both(void)
{
	struct frame f;

	CHECK(next(&f) && f.type == MSG_C_SWITCH && f.chan != CHAN);
	expect_call(true);
}

static void switches_and_exits(void)
{
	expect_both();
	add_data(MSG_C_STDOUT, STR("the call may be faster"));
	add_switched(OP_SEALED);
	add_switched(OP_SEALED);
	flush_out();
	expect(MSG_C_STDIN_EOF);
	add_exit(3 << 8, "exit");
	flush_out();
	linger();
}

static void refuses_to_switch(void)
{
	expect_both();
	add_error("conflict", 0, STAGE_SETUP);
	flush_out();
	linger();
}

static enum op_result without_layer;

static void finds_nothing_changed(void)
{
	expect_both();
	add_switched(without_layer);
	add_error("conflict", 0, STAGE_SETUP);
	flush_out();
	expect_call(false);
	expect(MSG_C_STDIN_EOF);
	add_exit(4 << 8, "exit");
	flush_out();
	linger();
}

static void finds_nothing_changed_for_nobody(void)
{
	struct frame f;

	expect_both();
	add_switched(OP_UNCHANGED);
	add_error("conflict", 0, STAGE_SETUP);
	flush_out();
	CHECK(!next(&f));
}

static void switches_and_is_told_to_stop(void)
{
	expect_both();
	add_switched(OP_SEALED);
	flush_out();
	expect_signal(SIGKILL);
	add_exit(SIGKILL, "signal");
	flush_out();
	linger();
}

static void what_comes_first_is_asked_for_together_with_the_call(void)
{
	struct session_first *first;

	first = s.first = ask_first(takes_it);
	CHECK(run(switches_and_exits) == 0 && res.code == 3);
	CHECK(first->answered && times_done == 1 && result_done == 1);
	s.first = NULL;
}

static void what_comes_first_may_be_refused(void)
{
	struct session_first *first;

	first = s.first = ask_first(takes_it);
	CHECK(run(refuses_to_switch) < 0 && e.kind == ERR_CONFLICT);
	CHECK(!first->answered && !first->refused && times_done == 0);
	s.first = NULL;
}

static void without_a_new_layer_the_call_waits_for_its_beginning(void)
{
	struct session_first *first;

	for (without_layer = OP_UNCHANGED; without_layer <= OP_COPIED; without_layer++) {
		if (without_layer == OP_SEALED)
			continue;
		first = s.first = ask_first(takes_it);
		CHECK(run(finds_nothing_changed) == 0 && res.code == 4);
		CHECK(first->answered && times_done == 1 && result_done == without_layer);
	}
	s.first = ask_first(cannot_keep_it);
	CHECK(run(finds_nothing_changed_for_nobody) < 0 && times_done == 1);
	CHECK_STR(e.msg, "it cannot be kept");
	s.first = NULL;
}

static void a_call_whose_beginning_is_lost_is_ended(void)
{
	struct session_first *first;

	first = s.first = ask_first(cannot_keep_it);
	CHECK(run(switches_and_is_told_to_stop) < 0);
	CHECK(first->answered && times_done == 1);
	CHECK_STR(e.msg, "it cannot be kept");
	s.first = NULL;
}

T_MAIN(T(what_comes_first_is_asked_for_together_with_the_call), T(what_comes_first_may_be_refused),
       T(without_a_new_layer_the_call_waits_for_its_beginning),
       T(a_call_whose_beginning_is_lost_is_ended))
