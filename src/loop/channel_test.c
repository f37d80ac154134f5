/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t.h"
#include "wire/proto.h"

/* Two ends of a connection, each with channel 7: input of `near` comes out of `far`. */
static struct loop loop;
static struct conn near_conn, far_conn;
static struct channel near_end, far_end;
static int feed, drink; /* our ends of the pipes */
static bool done;
static int broken;

static void on_near(struct conn *c, const struct frame *f, int *fds)
{
	(void)c;
	(void)fds;
	broken = channel_frame(&near_end, f) < 0 ? 1 : broken;
}

static void on_far(struct conn *c, const struct frame *f, int *fds)
{
	(void)c;
	(void)fds;
	broken = channel_frame(&far_end, f) < 0 ? 2 : broken;
}

static void on_closed(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

static void on_idle(struct loop *l)
{
	(void)l;
	done = true;
}

/* The time is over, but a machine that paused may have left work: stop when nothing is ready. */
static void on_end(struct loop_timer *t)
{
	(void)t;
	loop.chores = true;
}

static void run_ms(uint64_t ms)
{
	struct loop_timer t = { 0 };

	done = false;
	loop.idle = on_idle;
	loop_timer_set(&loop, &t, ms * 1000000, on_end);
	CHECK(loop_run_until(&loop, &done) == 0);
}

static void begin(void)
{
	static const struct conn_ops near_ops = { .frame = on_near, .closed = on_closed };
	static const struct conn_ops far_ops = { .frame = on_far, .closed = on_closed };
	int pair[2], in[2], out[2];

	CHECK(loop_init(&loop) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(conn_init(&near_conn, &loop, pair[0], &near_ops) == 0);
	CHECK(conn_init(&far_conn, &loop, pair[1], &far_ops) == 0);
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	channel_init(&near_end, &loop, &near_conn, 7, MSG_CREDIT, NULL);
	channel_init(&far_end, &loop, &far_conn, 7, MSG_CREDIT, NULL);
	CHECK(channel_source(&near_end, 0, in[0], MSG_STDIN, MSG_STDIN_EOF) == 0);
	CHECK(channel_sink(&far_end, 0, out[1], MSG_STDIN, MSG_STDIN_EOF) == 0);
	feed = in[1];
	drink = out[0];
	CHECK(fcntl(feed, F_SETFL, O_NONBLOCK) == 0 && fcntl(drink, F_SETFL, O_NONBLOCK) == 0);
}

/* Writes as much as the other side accepts; returns how much. */
static size_t pour(void)
{
	static char block[4096];
	size_t n = 0;

	for (int quiet = 0; quiet < 20;) {
		ssize_t r = write(feed, block, sizeof block);

		quiet = r > 0 ? 0 : quiet + 1;
		n += r > 0 ? (size_t)r : 0;
		run_ms(1);
	}
	return n;
}

static size_t swallow(void)
{
	static char block[65536];
	size_t n = 0;

	for (int quiet = 0; quiet < 20;) {
		ssize_t r = read(drink, block, sizeof block);

		quiet = r > 0 ? 0 : quiet + 1;
		n += r > 0 ? (size_t)r : 0;
		run_ms(1);
	}
	return n;
}

static void bytes_and_their_end_pass(void)
{
	char text[8] = "";

	begin();
	CHECK(write(feed, "hello", 5) == 5 && close(feed) == 0);
	run_ms(20);
	CHECK(read(drink, text, sizeof text) == 5 && strcmp(text, "hello") == 0);
	CHECK(read(drink, text, sizeof text) == 0 && !broken);
	CHECK(channel_is_over(&near_end) && channel_is_over(&far_end));
}

/* Without a reader the source stops at the window, and continues when the reader reads. */
static void a_reader_that_waits_stops_the_writer(void)
{
	size_t in, out;

	begin();
	in = pour();
	CHECK(near_end.credit == 0 && far_end.sink[0].pending.len <= LIMIT_CHANNEL && !broken);
	/* The window, plus what the pipes hold. */
	CHECK(in >= LIMIT_CHANNEL && in <= LIMIT_CHANNEL + 3 * 65536);
	out = swallow();
	CHECK(out == in && near_end.credit == LIMIT_CHANNEL && far_end.owed == 0);
}

static void a_reader_that_is_gone_takes_all(void)
{
	static char block[4096];

	begin();
	CHECK(close(drink) == 0);
	for (int i = 0; i < 200; i++) {
		(void)!write(feed, block, sizeof block);
		run_ms(1);
	}
	CHECK(!broken && near_end.credit > 0);
}

static void more_than_the_window_breaks_the_protocol(void)
{
	static char block[LIMIT_FRAME_DATA];

	begin();
	for (size_t n = 0; n < LIMIT_CHANNEL + 2 * 65536 + sizeof block; n += sizeof block)
		CHECK(conn_send(&near_conn, MSG_STDIN, 7, (struct str){ block, sizeof block }) ==
		      0);
	run_ms(50);
	CHECK(broken == 2);
}

static void credit_for_what_was_not_sent_breaks_the_protocol(void)
{
	static const struct conn_field bad[] = { { TAG_BYTES, 1, NULL },
						 { TAG_BYTES, UINT64_MAX, NULL },
						 { TAG_PID, 0, NULL } };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		broken = 0;
		begin();
		CHECK(conn_say(&far_conn, MSG_CREDIT, 7, &bad[i], 1) == 0);
		run_ms(20);
		CHECK(broken == 1);
	}
}

T_MAIN(T(bytes_and_their_end_pass), T(a_reader_that_waits_stops_the_writer),
       T(a_reader_that_is_gone_takes_all), T(more_than_the_window_breaks_the_protocol),
       T(credit_for_what_was_not_sent_breaks_the_protocol))
