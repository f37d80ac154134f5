/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/io.h"
#include "loop/conn_fixture.h"

static void the_backlog_has_a_ceiling(void)
{
	static char body[LIMIT_FRAME_BODY];
	int r = 0;

	set_up(false);
	for (int i = 0; i < 10 && r == 0; i++)
		r = conn_send(&a.c, 1, 0, (struct str){ body, sizeof body });
	CHECK(r == -E2BIG);
	CHECK(conn_backlog(&a.c) <= LIMIT_CONN_OUT);
	tear_down();
}

static void ten_megabytes_pass_both_ways_with_bounded_backlog(void)
{
	set_up(true);
	a.left = b.left = 10 << 20;
	pump(&a);
	pump(&b);
	while (!(a.bytes == 10 << 20 && b.bytes == 10 << 20)) {
		CHECK(loop_run(&l) == 0);
		CHECK(conn_backlog(&a.c) < LIMIT_CONN_HIGH + PIECE + 1000);
	}
	CHECK(a.drained > 0 && b.drained > 0 && a.closed == 0 && b.closed == 0);
	tear_down();
}

static void an_empty_connection_keeps_no_large_buffers(void)
{
	uint64_t all;

	ten_megabytes_pass_both_ways_with_bounded_backlog();
	set_up(true);
	all = b.bytes + (1 << 20);
	a.end_sent = false;
	a.left = 1 << 20;
	pump(&a);
	for (int i = 0; i < 100 && b.bytes < all; i++)
		run_for_ms(20);
	run_for_ms(20);
	CHECK(b.bytes == all && a.c.out.cap <= 4096 && b.c.in.cap <= 4096);
	tear_down();
}

static void read_all_from_peer(void)
{
	static char bytes[1 << 16];

	CHECK(io_set_nonblock(peer, true) == 0);
	while (read(peer, bytes, sizeof bytes) > 0)
		;
}

static void drained_is_called_when_a_later_send_empties_the_backlog(void)
{
	set_up(false);
	fill();
	for (int i = 0; i < 20; i++) {
		read_all_from_peer();
		send_one(&a.c, 1);
	}
	CHECK(conn_backlog(&a.c) == 0 && a.drained == 0);
	run_for_ms(5);
	CHECK(a.drained == 1);
	tear_down();
}

static void drained_is_called_after_a_flush(void)
{
	set_up(true);
	conn_hold(&a.c, true);
	fill();
	CHECK(conn_flush(&a.c, 1) == -ETIMEDOUT);
	while (conn_backlog(&a.c)) {
		run_for_ms(1);
		(void)conn_flush(&a.c, 0);
	}
	run_for_ms(5);
	CHECK(a.drained == 1);
	tear_down();
}

static void flush_times_out_with_a_slow_peer(void)
{
	static char bytes[1 << 16];
	uint64_t start;
	pid_t pid;

	set_up(false);
	for (int i = 0; i < 40; i++)
		CHECK(conn_send(&a.c, 1, 0, (struct str){ bytes, sizeof bytes }) == 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(peer, bytes, sizeof bytes) > 0)
			(void)usleep(40000);
		_exit(0);
	}
	start = clock_mono_ns();
	CHECK(conn_flush(&a.c, 300) == -ETIMEDOUT);
	CHECK(clock_mono_ns() - start < 5000 * NS_PER_MS);
	tear_down();
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void flush_to_a_closed_peer_fails(void)
{
	set_up(false);
	fill();
	fd_close(&peer);
	CHECK(conn_flush(&a.c, 1000) == -EPIPE);
	tear_down();
}

static void last_frames_are_delivered_despite_unsent_bytes(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1000);

	set_up(false);
	fill();
	send_fds(&a.c, 3, 10);
	CHECK(frame_put(&out, 7, 0, STR("bye")) == 0);
	raw(out.data, out.len, 0);
	fd_close(&peer);
	CHECK(loop_run(&l) == 0);
	CHECK(a.frames == 1 && a.types[0] == 7);
	CHECK(a.closed == 1);
	tear_down();
}

static void a_send_to_a_peer_that_left_does_not_hide_its_last_frames(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1000);

	set_up(false);
	CHECK(frame_put(&out, 7, 0, STR("bye")) == 0);
	raw(out.data, out.len, 0);
	fd_close(&peer);
	send_one(&a.c, 1);
	send_fds(&a.c, 2, 0);
	CHECK(conn_backlog(&a.c) == 0);
	CHECK(loop_run(&l) == 0);
	CHECK(a.frames == 1 && a.closed == 1);
	tear_down();
}

static void ending_a_hold_delivers_earlier_frames(void)
{
	set_up(true);
	b.hold_at = 3;
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	send_fds(&a.c, 2, 0);
	run_for_ms(5);
	CHECK(b.frames == 3);
	conn_hold(&b.c, false);
	CHECK(b.frames == 3);
	run_for_ms(5);
	CHECK(b.frames == 11 && b.fds == 2);
	tear_down();
}

static void ending_a_hold_twice_still_delivers(void)
{
	set_up(true);
	b.hold_at = 3;
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	run_for_ms(5);
	conn_hold(&b.c, false);
	conn_hold(&b.c, false);
	run_for_ms(5);
	CHECK(b.frames == 10);
	conn_hold(&b.c, true);
	conn_hold(&b.c, false);
	conn_hold(&b.c, true);
	send_one(&a.c, 1);
	run_for_ms(5);
	CHECK(b.frames == 10);
	tear_down();
}

static void ending_a_hold_delivers_if_the_peer_does_not_read(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1000);

	set_up(false);
	a.hold_at = 1;
	for (int i = 0; i < 3; i++)
		CHECK(frame_put(&out, 7, 0, STR("x")) == 0);
	raw(out.data, out.len, 0);
	run_for_ms(5);
	CHECK(a.frames == 1);
	fill();
	conn_hold(&a.c, false);
	run_for_ms(5);
	CHECK(a.frames == 3);
	tear_down();
}

static void a_peer_that_leaves_during_a_hold_loses_nothing_and_costs_no_cpu(void)
{
	struct timespec cpu = { 0 };

	set_up(true);
	b.hold_at = 2;
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	run_for_ms(5);
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	conn_done(&a.c);
	run_for_ms(200);
	CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0);
	CHECK(cpu.tv_sec == 0 && cpu.tv_nsec < 100 * (long)NS_PER_MS);
	CHECK(b.frames == 2 && b.closed == 0);
	conn_hold(&b.c, false);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 20 && b.closed == 1 && b.err == 0);
	tear_down();
}

T_MAIN(T(the_backlog_has_a_ceiling), T(ten_megabytes_pass_both_ways_with_bounded_backlog),
       T(an_empty_connection_keeps_no_large_buffers),
       T(drained_is_called_when_a_later_send_empties_the_backlog),
       T(drained_is_called_after_a_flush), T(flush_times_out_with_a_slow_peer),
       T(flush_to_a_closed_peer_fails), T(last_frames_are_delivered_despite_unsent_bytes),
       T(a_send_to_a_peer_that_left_does_not_hide_its_last_frames),
       T(ending_a_hold_delivers_earlier_frames), T(ending_a_hold_twice_still_delivers),
       T(ending_a_hold_delivers_if_the_peer_does_not_read),
       T(a_peer_that_leaves_during_a_hold_loses_nothing_and_costs_no_cpu))
