/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that passes no descriptors: clients see no difference. */
#include "warden/call/stream.h"

#include <errno.h>
#include <fcntl.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static void begin(void)
{
	fx_begin();
	fake.driver.has &= ~(unsigned)HAS_FDS;
	fx_build(&(struct fx_want){ 0 });
}

static struct fake_run *start(uint32_t chan)
{
	fx_exec(me, chan);
	(void)fx_await(me, MSG_C_STARTED);
	return fake_last_run();
}

static void what_it_prints_comes_before_how_it_ended(void)
{
	struct fake_run *r;
	const struct fx_frame *f;

	begin();
	r = start(3);
	for (int i = 0; i < FD_ROLES; i++)
		CHECK(r->fds[i] < 0);
	fake_print(r, MSG_STDOUT, STR("hello"));
	fake_print(r, MSG_STDERR, STR("oops"));
	fake_exit(r, 5 << 8);
	f = fx_await(me, MSG_C_STDOUT);
	CHECK(f->chan == 3 && f->n == 5 && memcmp(f->body, "hello", 5) == 0);
	f = fx_await(me, MSG_C_EXIT);
	CHECK(fx_number(f, TAG_STATUS) == 5 << 8 && fx_number(f, TAG_OUT_BYTES) == 5);
	CHECK(fx_number(f, TAG_ERR_BYTES) == 4);
	fx_settle();
	CHECK(!fx.w->calls && !fx.w->streams);
	fx_end();
}

static void input_and_its_end_go_in_as_frames(void)
{
	struct fake_run *r;

	begin();
	r = start(1);
	CHECK(fx_send_raw(me, MSG_C_STDIN, 1, STR("abc")) == 0);
	fx_settle();
	CHECK(r->ninput == 3 && memcmp(r->input, "abc", 3) == 0 && !r->eof);
	CHECK(fx_send_raw(me, MSG_C_STDIN_EOF, 1, STR_NONE) == 0);
	fx_settle();
	CHECK(r->eof);
	fx_end();
}

/* Unread output stays in init: the warden gives no credit for it. */
static void a_client_that_does_not_read_stops_the_command(void)
{
	static char much[LIMIT_FRAME_DATA];
	struct fake_run *r;
	size_t sent = 0;

	begin();
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "yes" }, { TAG_WINDOW, 1000, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	r = fake_last_run();
	for (; sent < LIMIT_CHANNEL; sent += sizeof much) {
		fake_print(r, MSG_STDOUT, (struct str){ much, sizeof much });
		fx_settle();
	}
	CHECK(!fx.ended && !fx_came(me, MSG_C_EXIT));
	/* Another call continues meanwhile. */
	fx_exec(me, 2);
	(void)fx_await(me, MSG_C_STARTED);
	fake_exit(fake_last_run(), 0);
	CHECK(fx_await(me, MSG_C_EXIT)->chan == 2);
	/* The end of the first call waits for its output. */
	fake_exit(r, 0);
	fx_settle();
	CHECK(!fx_came(me, MSG_C_EXIT));
	FX_SEND(me, MSG_C_CREDIT, 1, { TAG_BYTES, 1 << 20, NULL });
	CHECK(fx_number(fx_await(me, MSG_C_EXIT), TAG_OUT_BYTES) == LIMIT_CHANNEL);
	fx_end();
}

static void more_output_than_its_credit_ends_the_sandbox(void)
{
	static char much[LIMIT_FRAME_DATA];
	struct fake_run *r;

	begin();
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "yes" }, { TAG_WINDOW, 1000, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	r = fake_last_run();
	for (size_t n = 0; n < 2 * LIMIT_CHANNEL; n += sizeof much)
		fake_print(r, MSG_STDOUT, (struct str){ much, sizeof much });
	fx_await_end("init broke the protocol");
	fx_end();
}

static void credit_that_was_not_owed_ends_the_sandbox(void)
{
	begin();
	fake_credit(start(1), 1);
	fx_await_end("init broke the protocol");
	fx_end();
}

static void a_command_that_reads_nothing_stops_its_client_only(void)
{
	static char much[LIMIT_FRAME_DATA];

	begin();
	(void)start(1);
	for (size_t n = 0; n < LIMIT_STDIN_WINDOW; n += sizeof much) {
		CHECK(fx_send_raw(me, MSG_C_STDIN, 1, (struct str){ much, sizeof much }) == 0);
		fx_settle();
	}
	fx_exec(me, 2);
	(void)fx_await(me, MSG_C_STARTED);
	fake_exit(fake_last_run(), 0);
	CHECK(fx_await(me, MSG_C_EXIT)->chan == 2 && !fx.ended);
	fx_end();
}

static void a_terminal_is_inits(void)
{
	struct fake_run *r;

	begin();
	FX_SEND(me, MSG_C_EXEC, 1, { TAG_ARG, 0, "sh" }, { TAG_TTY, 1, NULL },
		{ TAG_ROWS, 40, NULL }, { TAG_COLS, 80, NULL });
	(void)fx_await(me, MSG_C_STARTED);
	fx_settle();
	r = fake_last_run();
	CHECK(r->rows == 40 && fake.count[FAKE_TERMINAL] == 0);
	FX_SEND(me, MSG_C_RESIZE, 1, { TAG_ROWS, 50, NULL }, { TAG_COLS, 90, NULL });
	fx_settle();
	CHECK(r->rows == 50);
	CHECK(fx_send_raw(me, MSG_C_STDIN, 1, STR("x")) == 0);
	fx_settle();
	CHECK(r->ninput == 1);
	fake_print(r, MSG_STDOUT, STR("y"));
	(void)fx_await(me, MSG_C_STDOUT);
	fake_exit(r, 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_end();
}

static void a_port_is_a_channel(void)
{
	struct fake_row rows[] = { { MSG_DIAL, MSG_DIALED, { { TAG_ERRNO, 0, NULL } }, 1, 0, 0 },
				   { 0 } };
	struct fake_run port = { .job = 1u << 30 | 1 };
	const struct fx_frame *f;
	char text[8] = "";

	begin();
	fake.init.rows = rows;
	FX_SEND(me, MSG_C_DIAL, 7, { TAG_PORT, 80, NULL });
	f = fx_await(me, MSG_C_DIALED);
	CHECK(f->chan == 7 && f->fd >= 0 && fcntl(f->fd, F_SETFL, O_NONBLOCK) == 0);
	fake_print(&port, MSG_STDOUT, STR("hi"));
	fx_settle();
	CHECK(read(f->fd, text, sizeof text) == 2);
	CHECK(write(f->fd, "you", 3) == 3);
	fx_settle();
	CHECK(fake_count(MSG_STDIN) == 1);
	/* The other end closes first, then the client. */
	fake_print(&port, MSG_END, STR_NONE);
	fx_settle();
	CHECK(read(f->fd, text, sizeof text) == 0 && fx.w->streams);
	CHECK(close(f->fd) == 0);
	((struct fx_frame *)f)->fd = FD_NONE;
	fx_settle();
	CHECK(!fx.w->streams && fake_count(MSG_END) == 1);
	fx_end();
}

static void what_needs_descriptors_is_not_there(void)
{
	begin();
	CHECK(fx.w->spare_group < 0 && fake.count[FAKE_GROUP_OPEN] == 0);
	fake_exit(start(1), 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_settle();
	CHECK(fake_count(MSG_STAND_BY) == 0);
	FX_SEND(me, MSG_C_EXEC, 2, { TAG_ARG, 0, "sh" }, { TAG_CALL_MEMORY, 1 << 20, NULL });
	fx_await_error(me, "driver 'fake' has no groups of calls");
	fx_end();
}

T_MAIN(T(what_it_prints_comes_before_how_it_ended), T(input_and_its_end_go_in_as_frames),
       T(a_client_that_does_not_read_stops_the_command),
       T(more_output_than_its_credit_ends_the_sandbox),
       T(credit_that_was_not_owed_ends_the_sandbox),
       T(a_command_that_reads_nothing_stops_its_client_only), T(a_terminal_is_inits),
       T(a_port_is_a_channel), T(what_needs_descriptors_is_not_there))
