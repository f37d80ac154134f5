/* SPDX-License-Identifier: Apache-2.0 */
/* A call from its request to its end, in every order that init and the client may choose. */
#include "warden/call/call.h"

#include <errno.h>
#include <signal.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static void begin(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
}

static struct fake_run *start(uint32_t chan)
{
	fx_exec(me, chan);
	(void)fx_await(me, MSG_C_STARTED);
	for (int i = fake.init.nruns - 1; i >= 0; i--)
		if (!fake.init.runs[i].ahead)
			return &fake.init.runs[i];
	return fake_last_run();
}

static void print(const struct fake_run *r, enum fd_role role, const char *text)
{
	size_t n = strlen(text);

	CHECK(write(r->fds[role], text, n) == (ssize_t)n);
}

static void what_it_prints_comes_before_how_it_ended(void)
{
	struct fake_run *r;
	const struct fx_frame *f;

	begin();
	r = start(3);
	print(r, FD_STDOUT, "hello");
	print(r, FD_STDERR, "oops");
	fake_exit(r, 5 << 8);
	f = fx_await(me, MSG_C_STDOUT);
	CHECK(f->chan == 3 && f->n == 5 && memcmp(f->body, "hello", 5) == 0);
	f = fx_await(me, MSG_C_EXIT);
	CHECK(f->chan == 3 && fx_number(f, TAG_STATUS) == 5 << 8);
	CHECK(fx_number(f, TAG_OUT_BYTES) == 5 && fx_number(f, TAG_ERR_BYTES) == 4);
	fx_end();
}

/* A process left behind keeps the pipe open: its later output is dropped. */
static void an_open_pipe_does_not_hold_up_the_answer(void)
{
	struct fake_run *r;
	int kept;

	begin();
	r = start(1);
	kept = TAKE_FD(r->fds[FD_STDOUT]);
	CHECK(write(kept, "one", 3) == 3);
	fake_exit(r, 0);
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_OUT_BYTES) == 3);
	CHECK(write(kept, "two", 3) == 3);
	fx_settle();
	CHECK(fx.w->calls && !fx_came(me, MSG_C_STDOUT));
	CHECK(close(kept) == 0);
	fx_settle();
	CHECK(!fx.w->calls);
	fx_end();
}

static void a_command_that_never_ran_is_an_error(void)
{
	struct fake_row rows[] = { { MSG_RUN,
				     MSG_FAILED,
				     { { TAG_STAGE, STAGE_EXEC, NULL },
				       { TAG_ERRNO, ENOENT, NULL },
				       { TAG_TEXT, 0, "true" } },
				     3,
				     1,
				     0 },
				   { 0 } };

	begin();
	fake.init.rows = rows;
	fx_exec(me, 1);
	fx_await_error(me, "true: command not found");
	fx_settle();
	CHECK(!fx.w->calls && fx.w->running == 0);
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fx_end();
}

static void answers_for_calls_that_are_not_there_are_dropped(void)
{
	static const uint8_t types[] = { MSG_STARTED, MSG_FAILED, MSG_EXITED, MSG_REAPED,
					 MSG_DIALED };

	begin();
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		for (uint32_t chan = 0; chan < 3; chan++)
			CHECK(fake_say(types[i], chan ? chan << 30 : 0, NULL, 0) == 0);
	fx_settle();
	CHECK(!fx.ended && me->ngot == me->nread);
	fx_end();
}

static void an_end_that_is_told_twice_is_one(void)
{
	const struct conn_field zero = { TAG_STATUS, 0, NULL };
	struct fake_run *r;
	uint32_t job;

	begin();
	r = start(1);
	job = r->job;
	fake_exit(r, 1 << 8);
	for (int i = 0; i < 3; i++) {
		CHECK(fake_say(MSG_EXITED, job, &zero, 1) == 0);
		CHECK(fake_say(MSG_FAILED, job, &zero, 1) == 0);
		CHECK(fake_say(MSG_STARTED, job, &zero, 1) == 0);
	}
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_STATUS) == 1 << 8);
	fx_settle();
	CHECK(!fx_came(me, MSG_C_EXIT) && !fx_came(me, MSG_C_ERROR) && fx.w->running == 0);
	fx_end();
}

static void fields_that_are_no_fields_end_the_sandbox(void)
{
	begin();
	(void)start(1);
	CHECK(conn_send(&fake.init.conn, MSG_EXITED, 1, STR("x")) == 0);
	fx_await_end("init broke the protocol");
	fx_end();
}

static void its_time_is_over(void)
{
	const struct fx_frame *f;

	begin();
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sleep" }, { TAG_TIMEOUT_MS, 60000, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	fx_pass_ms(59000);
	CHECK(!fx_came(me, MSG_C_EXIT));
	fx_pass_ms(2000);
	f = fx_await(me, MSG_C_EXIT);
	CHECK(fx_has_text(f, TAG_REASON, "timeout") && fx_number(f, TAG_STATUS) == SIGKILL);
	CHECK(fake.count[FAKE_GROUP_KILL] == 1);
	fx_end();
}

static void it_ends_with_the_connection_that_asked_for_it(void)
{
	struct fx_client *other;

	begin();
	other = fx_connect(false);
	fx_exec(other, 1);
	(void)fx_await(other, MSG_C_STARTED);
	fx_hang_up(other);
	fx_settle();
	CHECK(fake.count[FAKE_GROUP_KILL] == 1 && !fx.w->calls && !fx.ended);
	fx_end();
}

static void input_goes_in_and_its_end_too(void)
{
	struct fake_run *r;
	char text[8] = "";

	begin();
	r = start(1);
	CHECK(fx_send_raw(me, MSG_C_STDIN, 1, STR("abc")) == 0);
	CHECK(fx_number(fx_await(me, MSG_C_CREDIT), TAG_BYTES) == 3);
	CHECK(read(r->fds[FD_STDIN], text, sizeof text) == 3 && strcmp(text, "abc") == 0);
	CHECK(fx_send_raw(me, MSG_C_STDIN_EOF, 1, STR_NONE) == 0);
	fx_settle();
	CHECK(read(r->fds[FD_STDIN], text, sizeof text) == 0);
	fx_end();
}

static void more_input_than_its_credit_ends_the_call(void)
{
	static char much[LIMIT_FRAME_DATA];

	begin();
	(void)start(1);
	for (size_t n = 0; n <= LIMIT_STDIN_WINDOW + (1 << 17); n += sizeof much) {
		CHECK(fx_send_raw(me, MSG_C_STDIN, 1, (struct str){ much, sizeof much }) == 0);
		fx_settle();
	}
	CHECK(fx_has_text(fx_await(me, MSG_C_EXIT), TAG_REASON, "stdin_overrun"));
	fx_end();
}

static void input_that_nobody_reads_is_dropped(void)
{
	struct fake_run *r;

	begin();
	r = start(1);
	fd_close(&r->fds[FD_STDIN]);
	fx_settle();
	CHECK(fx_send_raw(me, MSG_C_STDIN, 1, STR("abc")) == 0);
	CHECK(fx_number(fx_await(me, MSG_C_CREDIT), TAG_BYTES) == 3);
	fx_end();
}

static void a_channel_in_use_is_refused(void)
{
	begin();
	(void)start(1);
	fx_exec(me, 1);
	fx_await_error(me, "in use");
	CHECK(fx.w->ncalls == 1);
	fx_end();
}

static void a_terminal_that_cannot_be_had_leaves_nothing(void)
{
	begin();
	fake.fail[FAKE_TERMINAL] = ENOSPC;
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	fx_await_error(me, "open a terminal");
	CHECK(fx.w->ncalls == 0 && fx.w->running == 0);
	fake.fail[FAKE_TERMINAL] = 0;
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	fx_end();
}

static void a_driver_without_terminals_says_so(void)
{
	fx_begin();
	fake.driver.has &= ~(unsigned)HAS_TERMINAL;
	fx_build(&(struct fx_want){ 0 });
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	fx_await_error(me, "driver 'fake' has no terminals");
	CHECK(fake_count(MSG_RUN) == 0 && fake.count[FAKE_TERMINAL] == 0);
	fx_end();
}

static void a_group_that_cannot_be_had_leaves_nothing(void)
{
	begin();
	/* The first call's group was made with the sandbox. */
	fake_exit(start(1), 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_settle();
	spare_drop(fx.w);
	fx_settle();
	fake.fail[FAKE_GROUP_OPEN] = EAGAIN;
	FX_SEND(me, MSG_C_EXEC, 2, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL });
	fx_await_error(me, "prepare a call");
	CHECK(fx.w->ncalls == 0);
	fx_end();
}

static void a_limit_that_cannot_be_had_is_named(void)
{
	begin();
	fake.fail[FAKE_GROUP_LIMIT] = EOPNOTSUPP;
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_CALL_MEMORY, 1 << 20, NULL });
	fx_await_error(me, "it is a fake");
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_CALL_MEMORY, 1 << 20, NULL },
		{ TAG_BEST_EFFORT, 1, NULL });
	CHECK(fx_has_text(fx_await(me, MSG_C_STARTED), TAG_WARNING, "not enforced"));
	fx_end();
}

static void the_sandbox_ends_with_its_last_call(void)
{
	struct fake_run *r;

	fx_begin();
	fx_build(&(struct fx_want){ .ephemeral = true });
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "true" }, { TAG_FINAL, 1, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	r = fake_last_run();
	print(r, FD_STDOUT, "done");
	fake_exit(r, 0);
	fx_await_end("its command has ended");
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_STATUS) == 0);
	CHECK(fake.count[FAKE_DESTROY] == 1 && fx.w->removed);
	fx_end();
}

/* Both of two final calls are answered, whichever ends first. */
static void of_two_final_calls_none_is_forgotten(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	for (uint32_t chan = 1; chan < 3; chan++) {
		FX_SEND(me, MSG_C_EXEC, chan, { TAG_ARG, 0, "true" }, { TAG_FINAL, 1, NULL });
		(void)fx_await(me, MSG_C_STARTED);
	}
	fake_exit(fake_run_of(1), 0);
	fx_await_end("its command has ended");
	CHECK(fx_has_text(fx_await(me, MSG_C_EXIT), TAG_REASON, "sandbox_ended"));
	CHECK(fx_await(me, MSG_C_EXIT)->chan == 1);
	fx_end();
}

static void it_is_ended_with_its_sandbox(void)
{
	begin();
	(void)start(1);
	fake.init.mute = true; /* init reports no end */
	FX_SEND(me, MSG_C_DESTROY, 2, { TAG_REASON, 0, "test" });
	fx_await_end("killed");
	CHECK(fx_has_text(fx_await(me, MSG_C_EXIT), TAG_REASON, "sandbox_ended"));
	(void)fx_await(me, MSG_C_DESTROYED);
	fx_end();
}

T_MAIN(T(what_it_prints_comes_before_how_it_ended), T(an_open_pipe_does_not_hold_up_the_answer),
       T(a_command_that_never_ran_is_an_error), T(answers_for_calls_that_are_not_there_are_dropped),
       T(an_end_that_is_told_twice_is_one), T(fields_that_are_no_fields_end_the_sandbox),
       T(its_time_is_over), T(it_ends_with_the_connection_that_asked_for_it),
       T(input_goes_in_and_its_end_too), T(more_input_than_its_credit_ends_the_call),
       T(input_that_nobody_reads_is_dropped), T(a_channel_in_use_is_refused),
       T(a_terminal_that_cannot_be_had_leaves_nothing), T(a_driver_without_terminals_says_so),
       T(a_group_that_cannot_be_had_leaves_nothing), T(a_limit_that_cannot_be_had_is_named),
       T(the_sandbox_ends_with_its_last_call), T(of_two_final_calls_none_is_forgotten),
       T(it_is_ended_with_its_sandbox))
