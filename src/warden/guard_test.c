/* SPDX-License-Identifier: Apache-2.0 */
/* The warden verifies the sandbox before any command runs: each stage, each failure, each order. */
#include <errno.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static void begin(void)
{
	fx_begin();
	fake.driver.has |= HAS_VERIFY;
}

static void one_that_is_not_what_it_must_be_is_refused(void)
{
	begin();
	fake.fail[FAKE_VERIFY] = EPERM;
	fx_send_build(&(struct fx_want){ 0 });
	fx_await_error(me, "verify a fake");
	fx_await_end("it could not be built");
	CHECK(fake.count[FAKE_DESTROY] == 1 && fake_count(MSG_RUN) == 0);
	fx_end();
}

static void one_that_is_kept_is_verified_before_it_is_ready(void)
{
	begin();
	fx_build(&(struct fx_want){ 0 });
	CHECK(fake.count[FAKE_VERIFY] >= 2 && fx.w->cell->verified);
	fx_end();
}

/* A sandbox made for one command: the call is accepted first, and verified with the sandbox. */
static void nothing_else_is_done_before_it_is_whole(void)
{
	static const uint8_t refused[] = { MSG_C_SWITCH, MSG_C_DIAL, MSG_C_PAUSE, MSG_C_RESUME,
					   MSG_C_POLICY };
	struct fx_client *other;

	begin();
	fake.init.no_hello = true;
	fx_send_build(&(struct fx_want){ .ephemeral = true });
	fx_settle();
	CHECK(fx.w->state == SANDBOX_RUNNING && !guard_is_whole(fx.w));
	other = fx_connect(false);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		FX_SEND(other, refused[i], 1, { TAG_PORT, 80, NULL });
		fx_await_error(other, "still being built");
	}
	fx_exec(other, 2);
	fx_await_error(other, "still being built");
	CHECK(fake_count(MSG_RUN) == 0);
	fx_end();
}

static void an_init_that_says_nothing_is_given_up(void)
{
	begin();
	fake.init.no_hello = true;
	fx_send_build(&(struct fx_want){ .ephemeral = true });
	fx_settle();
	fx_pass_ms(9000);
	CHECK(!fx.ended);
	fx_await_end("init does not answer");
	fx_end();
}

static void an_init_of_another_version_ends_the_sandbox(void)
{
	begin();
	fake.init.version = PROTO_INIT_VERSION + 1;
	fx_send_build(&(struct fx_want){ .ephemeral = true });
	fx_await_end("init speaks another version of the protocol");
	fx_end();
}

static void an_init_that_ends_while_it_is_built_is_the_reason(void)
{
	begin();
	fake.init.no_hello = true;
	fx_send_build(&(struct fx_want){ .ephemeral = true });
	fx_settle();
	conn_done(&fake.init.conn);
	fx_await_end("init ended while the sandbox was being built");
	fx_end();
}

/* The warden verifies again after the hello, when init has completed its setup. */
static void one_that_turns_bad_with_its_hello_is_refused(void)
{
	begin();
	fake.init.no_hello = true;
	fx_send_build(&(struct fx_want){ .ephemeral = true });
	fx_settle();
	fake.fail[FAKE_VERIFY] = EPERM;
	CHECK(fake_say(MSG_HELLO, 0, &(struct conn_field){ TAG_VERSION, PROTO_INIT_VERSION, NULL },
		       1) == 0);
	fx_await_end(NULL);
	CHECK(fx.w->refusal.kind != ERR_NONE && strstr(fx.w->end_reason, "verify a fake"));
	fx_end();
}

/* A wrong process waits at the gate as the first command: this test itself. */
static void a_first_command_that_is_not_what_it_must_be_never_runs(void)
{
	begin();
	fx_build(&(struct fx_want){ 0 });
	fx_exec(me, 1);
	fx_await_end(NULL);
	CHECK(fx.w->refusal.kind != ERR_NONE);
	fx_await_error(me, "");
	fx_end();
}

static void a_driver_that_cannot_verify_lets_it_run(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fx_settle();
	CHECK(fake.count[FAKE_VERIFY] == 0 && fx.w->guarded);
	fx_end();
}

static void a_cell_that_cannot_be_made_is_destroyed_all_the_same(void)
{
	fx_begin();
	fake.fail[FAKE_CREATE] = ENOSPC;
	fx_send_build(&(struct fx_want){ 0 });
	fx_await_error(me, "make a fake");
	fx_await_end("it could not be built");
	CHECK(fake.count[FAKE_DESTROY] == 1);
	fx_end();
}

static void what_the_driver_lacks_is_refused_before_anything_is_made(void)
{
	fx_begin();
	fake.driver.has &= ~(unsigned)HAS_NETWORK;
	fx_send_build(&(struct fx_want){ .network = true });
	fx_await_error(me, "driver 'fake' has no network");
	fx_await_end("it could not be built");
	CHECK(fake.count[FAKE_CREATE] == 0 && !fx_exists("trace.jsonl") && !fx_exists("upper"));
	fx_end();
}

T_MAIN(T(one_that_is_not_what_it_must_be_is_refused),
       T(one_that_is_kept_is_verified_before_it_is_ready),
       T(nothing_else_is_done_before_it_is_whole), T(an_init_that_says_nothing_is_given_up),
       T(an_init_of_another_version_ends_the_sandbox),
       T(an_init_that_ends_while_it_is_built_is_the_reason),
       T(one_that_turns_bad_with_its_hello_is_refused),
       T(a_first_command_that_is_not_what_it_must_be_never_runs),
       T(a_driver_that_cannot_verify_lets_it_run),
       T(a_cell_that_cannot_be_made_is_destroyed_all_the_same),
       T(what_the_driver_lacks_is_refused_before_anything_is_made))
