/* SPDX-License-Identifier: Apache-2.0 */
/* Init passes sockets whose last close(2) blocks for a minute: the warden never blocks with it. */
#include "base/lingering_fixture.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

static void begin(struct fake_row *rows)
{
	fx_begin();
	fake.init.rows = rows;
	fx_build(&(struct fx_want){ 0 });
}

static void end(void)
{
	fx_end();
	check_soon();
	CHECK(close(reader) == 0);
}

static void pass(uint8_t type, uint32_t chan, int fd)
{
	size_t at = 0;

	CHECK(conn_begin(&fake.init.conn, type, chan, &at) == 0);
	CHECK(conn_end(&fake.init.conn, at, &fd, 1) == 0);
}

static void one_that_no_message_has_is_no_wait(void)
{
	begin(NULL);
	pass(MSG_REAPED, 0, lingering());
	begin_now();
	fx_settle();
	check_soon();
	end();
}

static void a_port_that_nobody_asked_for_is_no_wait(void)
{
	begin(NULL);
	pass(MSG_DIALED, 77, lingering());
	begin_now();
	fx_settle();
	check_soon();
	end();
}

static void a_port_whose_client_left_is_no_wait(void)
{
	static struct fake_row rows[] = { { MSG_DIAL, 0, { { 0 } }, 0, 0, 0 }, { 0 } };
	struct fx_client *other;

	begin(rows);
	other = fx_connect(false);
	FX_SEND(other, MSG_C_DIAL, 7, { TAG_PORT, 80, NULL });
	fx_settle();
	fx_hang_up(other);
	fx_settle();
	pass(MSG_DIALED, 1u << 30 | 1, lingering());
	begin_now();
	fx_settle();
	check_soon();
	end();
}

static void more_than_a_message_may_have_is_no_wait(void)
{
	int fds[FDS_MOST];

	begin(NULL);
	for (int i = 0; i < FDS_MOST - 1; i++)
		fds[i] = STDIN_FILENO;
	fds[FDS_MOST - 1] = lingering();
	put_fds(fake.init.conn.fd, fds, FDS_MOST);
	CHECK(close(fds[FDS_MOST - 1]) == 0);
	begin_now();
	fx_await_end("init broke the protocol");
	check_soon();
	end();
}

/* The warden reads the first message; the second is still in the socket at the close. */
static void what_a_child_sends_is_no_wait(void)
{
	struct fake_run *r;

	fx_begin();
	fake.init.late = true;
	fx_build(&(struct fx_want){ 0 });
	fx_exec(me, 1);
	(void)fx_await(me, MSG_C_STARTED);
	fake_exit(fake_last_run(), 0);
	(void)fx_await(me, MSG_C_EXIT);
	fx_settle();
	CHECK(fx.w->spare);
	r = fake_run_of(fx.w->spare->call->job);
	for (int i = 0; i < 2; i++) {
		int fd = lingering();

		put_fds(r->fds[FD_ORDER], &fd, 1);
		CHECK(close(fd) == 0);
	}
	begin_now();
	fx_settle();
	check_soon();
	CHECK(fx.w->spare->state == SPARE_DROPPED);
	end();
}

T_MAIN(T(one_that_no_message_has_is_no_wait), T(a_port_that_nobody_asked_for_is_no_wait),
       T(a_port_whose_client_left_is_no_wait), T(more_than_a_message_may_have_is_no_wait),
       T(what_a_child_sends_is_no_wait))
