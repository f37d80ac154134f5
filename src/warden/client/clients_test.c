/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are allowed when: every type of request in every state of the sandbox. */
#include <errno.h>
#include <sys/socket.h>

#include "t.h"
#include "warden/fixture.h"

static struct fx_client *me = &fx.client[0];

enum { FIRST_TYPE = 64, LAST_TYPE = 255 };

static void nothing_is_done_for_a_client_that_did_not_say_hello(void)
{
	struct fx_client *c;

	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	c = fx_connect(true);
	for (int type = FIRST_TYPE + 1; type <= LAST_TYPE; type++) {
		CHECK(fx_send_raw(c, (uint8_t)type, 1, STR_NONE) == 0);
		fx_await_error(c, "did not say hello");
	}
	CHECK(!fx.ended && fx.w->state == SANDBOX_RUNNING);
	fx_end();
}

static void a_client_of_another_version_is_told_so(void)
{
	static const uint64_t bad[][2] = { { 0, 0 }, { 1, 1 }, { 9, 9 }, { 9, 3 } };

	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fx_client *c = &fx.client[1];

		if (i == 0)
			c = fx_connect(true);
		FX_SEND(c, MSG_C_HELLO, 0, { TAG_VERSION, bad[i][0], NULL },
			{ TAG_NEWEST, bad[i][1], NULL });
		fx_await_error(c, "versions");
	}
	fx_end();
}

/* Before the build, the warden refuses every request or reports the state, and changes nothing. */
static void before_it_is_built_no_request_does_harm(void)
{
	fx_begin();
	for (int type = FIRST_TYPE + 1; type <= LAST_TYPE; type++) {
		if (type == MSG_C_BUILD || type == MSG_C_DESTROY)
			continue;
		CHECK(fx_send_raw(me, (uint8_t)type, 1, STR_NONE) == 0);
		fx_settle();
		CHECK(!fx.ended && fx.w->state == SANDBOX_NEW);
	}
	CHECK(!fake.cell);
	fx_build(&(struct fx_want){ 0 });
	fx_end();
}

static void an_empty_request_of_any_type_does_no_harm(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	fx_lease(me);
	for (int type = FIRST_TYPE + 1; type <= LAST_TYPE; type++) {
		if (type == MSG_C_DESTROY)
			continue;
		CHECK(fx_send_raw(me, (uint8_t)type, 1, STR_NONE) == 0);
		fx_settle();
		if (fx.w->state == SANDBOX_PAUSED)
			CHECK(fx_send_raw(me, MSG_C_RESUME, 1, STR_NONE) == 0);
		fx_settle();
		CHECK(!fx.ended && fx.w->state == SANDBOX_RUNNING);
		me->ngot = me->nread = 0;
	}
	fx_end();
}

static void a_request_that_is_cut_is_refused(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	for (int type = FIRST_TYPE + 1; type < MSG_C_READY; type++) {
		if (type == MSG_C_DESTROY || type == MSG_C_STDIN)
			continue;
		CHECK(fx_send_raw(me, (uint8_t)type, 1, STR("\1\0\377\377\377\377x")) == 0);
		fx_settle();
		CHECK(!fx.ended);
		me->ngot = me->nread = 0;
	}
	fx_end();
}

static void a_sandbox_is_built_once_and_by_its_creator(void)
{
	struct fx_client *other;

	fx_begin();
	other = fx_connect(false);
	CHECK(fx_send_raw(other, MSG_C_BUILD, 1, STR_NONE) == 0);
	fx_await_error(other, "built already");
	fx_build(&(struct fx_want){ 0 });
	fx_send_build(&(struct fx_want){ 0 });
	fx_await_error(me, "built already");
	CHECK(fake.count[FAKE_CREATE] == 1);
	fx_end();
}

static void a_ready_one_is_claimed_by_the_first(void)
{
	static const uint8_t refused[] = { MSG_C_EXEC, MSG_C_SWITCH, MSG_C_PAUSE,  MSG_C_DIAL,
					   MSG_C_PS,   MSG_C_LEASE,  MSG_C_ATTACH, MSG_C_CALLS };
	struct fx_client *one, *two;

	fx_begin();
	fx_build(&(struct fx_want){ .ready = true });
	CHECK(fx.w->state == SANDBOX_READY && !fx_exists("trace.jsonl"));
	CHECK(fx_send_raw(me, MSG_C_KEEP, 0, STR_NONE) == 0);
	one = fx_connect(false);
	two = fx_connect(false);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		CHECK(fx_send_raw(one, refused[i], 1, STR_NONE) == 0);
		fx_await_error(one, "no owner yet");
	}
	FX_SEND(one, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "other" });
	fx_await_error(one, "another kind");
	FX_SEND(one, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" }, { TAG_HOSTNAME, 0, "mine" });
	FX_SEND(two, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" });
	(void)fx_await(one, MSG_C_READY);
	fx_await_error(two, "has an owner");
	CHECK(fake.count[FAKE_CLAIM] == 1 && fx_exists("trace.jsonl"));
	/* The sandbox belongs to the claimer now, and ends with its connection. */
	fx_hang_up(me);
	fx_settle();
	CHECK(!fx.ended);
	fx_hang_up(one);
	fx_await_end("its creator is gone");
	fx_end();
}

static void a_claim_that_fails_ends_it(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ .ready = true });
	fake.fail[FAKE_CLAIM] = EIO;
	FX_SEND(me, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" });
	fx_await_error(me, "claim a fake");
	fx_await_end("it could not be given to its owner");
	fx_end();
}

static void one_that_is_not_kept_ends_with_its_creator(void)
{
	for (int kept = 0; kept < 2; kept++) {
		fx_begin();
		fx_build(&(struct fx_want){ 0 });
		(void)fx_connect(false);
		if (kept)
			CHECK(fx_send_raw(me, MSG_C_KEEP, 0, STR_NONE) == 0);
		fx_settle();
		fx_hang_up(me);
		fx_settle();
		CHECK(fx.ended == !kept);
		fx_end();
	}
}

static void too_many_clients_and_bytes_that_are_no_frame_do_no_harm(void)
{
	static const char junk[FRAME_HEADER] = { -1, -1, -1, -1, 9, 9, 1, 1 };
	struct fx_client *c;

	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	c = fx_connect(false);
	fx_settle();
	CHECK(send(c->conn.fd, junk, sizeof junk, MSG_NOSIGNAL) == (ssize_t)sizeof junk);
	fx_settle();
	CHECK(c->closed && !fx.ended && fx.w->nclients == 1);
	fx_end();
}

/* A pause freezes through the driver; if that fails, the sandbox is not paused. */
static void a_pause_that_fails_is_none(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	fx_lease(me);
	fake.fail[FAKE_FREEZE] = ETIME;
	CHECK(fx_send_raw(me, MSG_C_PAUSE, 1, STR_NONE) == 0);
	fx_await_error(me, "freeze");
	CHECK(fx.w->state == SANDBOX_RUNNING && fake.count[FAKE_THAW] == 1);
	fake.fail[FAKE_FREEZE] = 0;
	CHECK(fx_send_raw(me, MSG_C_PAUSE, 1, STR_NONE) == 0);
	CHECK(fx_has_text(fx_await(me, MSG_C_STATE), TAG_STATE, "paused"));
	fake.fail[FAKE_THAW] = EIO;
	CHECK(fx_send_raw(me, MSG_C_RESUME, 1, STR_NONE) == 0);
	fx_await_error(me, "thaw");
	fx_end();
}

/* Without a freezer, the warden orders init to stop all processes. */
static void without_a_freezer_init_stops_them(void)
{
	fx_begin();
	fake.driver.has &= ~(unsigned)HAS_FREEZE;
	fx_build(&(struct fx_want){ 0 });
	fx_lease(me);
	CHECK(fx_send_raw(me, MSG_C_PAUSE, 1, STR_NONE) == 0);
	(void)fx_await(me, MSG_C_STATE);
	fx_settle();
	CHECK(fake_count(MSG_SIGNAL) == 1 && fake.count[FAKE_FREEZE] == 0);
	fx_end();
}

static void its_time_to_live_is_over(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ .ttl_ms = 60000 });
	fx_pass_ms(59000);
	CHECK(!fx.ended);
	FX_SEND(me, MSG_C_EXTEND, 1, { TAG_TTL_MS, 10000, NULL });
	(void)fx_await(me, MSG_C_STATE);
	fx_pass_ms(9000);
	CHECK(!fx.ended);
	fx_await_end("its time to live has passed");
	CHECK(fx.w->expired);
	fx_end();
}

static char settled[3][32];

static int keep_argv(const char *path, char *const argv[], char *const envp[])
{
	(void)path;
	(void)envp;
	for (int i = 0; i < 3; i++)
		(void)snprintf(settled[i], sizeof settled[i], "%s", argv[i] ? argv[i] : "");
	return 0;
}

static void what_nobody_asked_to_end_is_settled(void)
{
	fx_begin();
	fx.w->exec = keep_argv;
	fx_build(&(struct fx_want){ 0 });
	CHECK(fx_send_raw(me, MSG_C_KEEP, 0, STR_NONE) == 0);
	fx_settle();
	fx_hang_up(me);
	conn_done(&fake.init.conn);
	fx_await_end("init ended");
	warden_settle(fx.w);
	CHECK_STR(settled[0], "cay");
	CHECK_STR(settled[2], "abcdefgh1234");
	fx_end();
}

static void a_port_goes_to_who_asked_for_it(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), no_tcp[2];
	size_t at = 0;
	struct fake_row rows[] = { { MSG_DIAL, 0, { { 0 } }, 0, 0, 0 }, { 0 } };
	const struct fx_frame *f;

	fx_begin();
	fake.init.rows = rows;
	fx_build(&(struct fx_want){ 0 });
	FX_SEND(me, MSG_C_DIAL, 7, { TAG_PORT, 80, NULL });
	fx_settle();
	CHECK(fd >= 0 && conn_begin(&fake.init.conn, MSG_DIALED, 1u << 30 | 1, &at) == 0);
	CHECK(conn_end(&fake.init.conn, at, &fd, 1) == 0);
	f = fx_await(me, MSG_C_DIALED);
	CHECK(f->chan == 7 && f->fd >= 0);
	/* A descriptor that is not a TCP socket is not passed on. */
	FX_SEND(me, MSG_C_DIAL, 8, { TAG_PORT, 80, NULL });
	fx_settle();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, no_tcp) == 0);
	CHECK(conn_begin(&fake.init.conn, MSG_DIALED, 1u << 30 | 2, &at) == 0);
	CHECK(conn_end(&fake.init.conn, at, no_tcp, 2) == 0);
	fx_await_error(me, "connect to port 80 inside");
	fx_end();
}

T_MAIN(T(nothing_is_done_for_a_client_that_did_not_say_hello),
       T(a_client_of_another_version_is_told_so), T(before_it_is_built_no_request_does_harm),
       T(an_empty_request_of_any_type_does_no_harm), T(a_request_that_is_cut_is_refused),
       T(a_sandbox_is_built_once_and_by_its_creator), T(a_ready_one_is_claimed_by_the_first),
       T(a_claim_that_fails_ends_it), T(one_that_is_not_kept_ends_with_its_creator),
       T(too_many_clients_and_bytes_that_are_no_frame_do_no_harm), T(a_pause_that_fails_is_none),
       T(without_a_freezer_init_stops_them), T(its_time_to_live_is_over),
       T(what_nobody_asked_to_end_is_settled), T(a_port_goes_to_who_asked_for_it))
