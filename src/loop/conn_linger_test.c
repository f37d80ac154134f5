/* SPDX-License-Identifier: Apache-2.0 */
/* A peer passes sockets whose last close(2) blocks for a minute: no connection blocks with it. */
#include "base/lingering_fixture.h"
#include "loop/conn_fixture.h"

static void pass_lingering(int others)
{
	int fds[FDS_MOST], fd = lingering();

	for (int i = 0; i < others; i++)
		fds[i] = STDIN_FILENO;
	fds[others] = fd;
	put_fds(peer, fds, others + 1);
	CHECK(close(fd) == 0);
}

static void what_does_not_fit_a_frame_is_no_wait(void)
{
	set_up(false);
	pass_lingering(FDS_MOST - 1);
	begin_now();
	CHECK(loop_run(&l) == 0);
	check_soon();
	CHECK(a.closed == 1 && a.err == -EBADMSG && close(reader) == 0);
	tear_down();
}

static void what_no_frame_took_is_no_wait(void)
{
	set_up(false);
	pass_lingering(0);
	run_for_ms(5);
	CHECK(a.c.fdq_len == 1);
	begin_now();
	conn_done(&a.c);
	check_soon();
	CHECK(close(reader) == 0);
	tear_down();
}

static void what_was_not_read_is_no_wait(void)
{
	set_up(false);
	a.c.hostile = true;
	pass_lingering(0);
	begin_now();
	conn_done(&a.c);
	check_soon();
	CHECK(close(reader) == 0);
	tear_down();
}

static void what_is_passed_on_to_a_peer_that_left_is_no_wait(void)
{
	int fd;
	size_t at = 0;

	set_up(false);
	fd = lingering();
	CHECK(conn_begin(&a.c, 1, 1, &at) == 0 && close(peer) == 0);
	begin_now();
	(void)conn_end(&a.c, at, &fd, 1);
	conn_done(&a.c);
	check_soon();
	CHECK(close(reader) == 0);
}

T_MAIN(T(what_does_not_fit_a_frame_is_no_wait), T(what_no_frame_took_is_no_wait),
       T(what_was_not_read_is_no_wait), T(what_is_passed_on_to_a_peer_that_left_is_no_wait))
