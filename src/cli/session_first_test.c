/* SPDX-License-Identifier: Apache-2.0 */
/* A switch that is asked for together with the call. */
#include "cli/session_fixture.h"

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
	static struct session_first first;

	times_done = 0;
	buf_clear(&request);
	CHECK(field_put_c(&request, TAG_SEAL, "layer") == 0);
	first = (struct session_first){ .request = &request, .done = done, .ctx = &times_done };
	return &first;
}

static void add_switched(void)
{
	add_number(MSG_C_SWITCHED, TAG_SEALED, 1);
}

static void expect_both(void)
{
	struct frame f;

	CHECK(next(&f) && f.type == MSG_C_SWITCH && f.chan != CHAN);
	expect(MSG_C_EXEC);
}

static void switches_and_exits(void)
{
	expect_both();
	expect(MSG_C_STDIN_EOF);
	add_data(MSG_C_STDOUT, STR("the call may be faster"));
	add_switched();
	add_switched();
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

static void switches_and_is_told_to_stop(void)
{
	expect_both();
	expect(MSG_C_STDIN_EOF);
	add_switched();
	flush_out();
	expect_signal(SIGKILL);
	add_exit(SIGKILL, "signal");
	flush_out();
	linger();
}

static void what_comes_first_is_asked_for_together_with_the_call(void)
{
	s.first = ask_first(takes_it);
	CHECK(run(switches_and_exits) == 0 && res.code == 3);
	CHECK(s.first->answered && times_done == 1 && result_done == 1);
	s.first = NULL;
}

static void what_comes_first_may_be_refused(void)
{
	s.first = ask_first(takes_it);
	CHECK(run(refuses_to_switch) < 0 && e.kind == ERR_CONFLICT);
	CHECK(!s.first->answered && times_done == 0);
	s.first = NULL;
}

static void a_call_whose_beginning_is_lost_is_ended(void)
{
	s.first = ask_first(cannot_keep_it);
	CHECK(run(switches_and_is_told_to_stop) < 0);
	CHECK(s.first->answered && times_done == 1);
	CHECK_STR(e.msg, "it cannot be kept");
	s.first = NULL;
}

T_MAIN(T(what_comes_first_is_asked_for_together_with_the_call), T(what_comes_first_may_be_refused),
       T(a_call_whose_beginning_is_lost_is_ended))
