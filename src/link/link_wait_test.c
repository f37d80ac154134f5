/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking forms against a scripted warden: a child process answers one request. */
#include "link/link_fixture.h"

#include <sys/eventfd.h>

/* A child that waits for one frame of a type and sends the scripted answer. */
static pid_t script(uint8_t hears, void (*answer)(uint32_t chan))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct frame f = hear(hears);

		answer(f.chan);
		_exit(0);
	}
	return pid;
}

static void join(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static struct err e;

static void say_state(uint32_t chan)
{
	say(MSG_C_STATE, chan, TAG_CALLS, 3, TAG_STATE, "running");
}

static void the_state_is_waited_for(void)
{
	struct sandbox_status st;
	pid_t pid;

	set_up(3);
	pid = script(MSG_C_INFO, say_state);
	CHECK(link_info(link_, &waiter, &st, &e) == 0);
	CHECK(st.calls_running == 3 && st.ttl_left_ms == UINT64_MAX);
	CHECK_STR(st.state, "running");
	join(pid);
	tear_down();
}

static void say_pong(uint32_t chan)
{
	say_plain(MSG_C_PONG, chan);
}

static void another_answer_is_an_error(void)
{
	struct sandbox_status st = { .init_pid = 5 };
	pid_t pid;

	set_up(3);
	pid = script(MSG_C_INFO, say_pong);
	CHECK(link_info(link_, &waiter, &st, &e) == -1 && st.init_pid == 5);
	CHECK_STR(e.code, "warden.protocol");
	join(pid);
	tear_down();
}

static void a_wait_ends_at_its_deadline_or_by_its_cancel(void)
{
	struct sandbox_status st;
	uint64_t one = 1;
	int cancel;

	set_up(3);
	waiter.deadline_ns = clock_mono_ns() + 20 * NS_PER_MS;
	CHECK(link_info(link_, &waiter, &st, &e) == -1 && e.kind == ERR_TIMEOUT);
	waiter.deadline_ns = 0;
	cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	waiter.cancel_fd = cancel;
	CHECK(write(cancel, &one, sizeof one) == sizeof one);
	CHECK(link_info(link_, &waiter, &st, &e) == -1);
	CHECK_STR(e.code, "cancelled");
	(void)close(cancel);
	tear_down();
}

static void say_busy(uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	CHECK(field_put_c(&b, TAG_KIND, "conflict") == 0);
	CHECK(field_put_c(&b, TAG_CODE, "sandbox.busy") == 0);
	say_raw(MSG_C_ERROR, chan, buf_str(&b));
	CHECK(hear(MSG_C_LEASE_END).chan == 0);
}

static void say_unknown(uint32_t chan)
{
	say(MSG_C_ERROR, chan, 0, 0, TAG_KIND, "invalid");
}

static void a_lease_that_is_not_given_is_given_up(void)
{
	pid_t pid;

	set_up(3);
	pid = script(MSG_C_LEASE, say_busy);
	waiter.deadline_ns = clock_mono_ns() + 5 * NS_PER_S;
	CHECK(link_lease(link_, &waiter, &e) == -1);
	CHECK_STR(e.code, "sandbox.busy");
	join(pid);
	tear_down();

	set_up(0);
	pid = script(MSG_C_LEASE, say_unknown);
	CHECK(link_lease(link_, &waiter, &e) == -1);
	CHECK_STR(e.code, "lease.none");
	CHECK(hears_nothing());
	join(pid);
	tear_down();
}

static int count_two(void *ctx, const struct link_process *p)
{
	int *n = ctx;

	CHECK(p->pid == 5 && strlen(p->args) < sizeof p->args);
	return ++*n == 2;
}

static void say_processes(uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100000);
	static char long_text[9000];

	memset(long_text, 'x', sizeof long_text - 1);
	CHECK(field_put_u64(&b, TAG_PID, 5) == 0 && field_put_c(&b, TAG_ARG, long_text) == 0);
	CHECK(field_put_c(&b, TAG_ARG, "more") == 0);
	for (int i = 0; i < 5; i++)
		say_raw(MSG_C_PROCESS, chan, buf_str(&b));
	say_plain(MSG_C_END, chan);
}

static void a_list_ends_when_its_reader_has_enough(void)
{
	struct sandbox_status st;
	pid_t pid;
	int n = 0;

	set_up(3);
	pid = script(MSG_C_PS, say_processes);
	CHECK(link_ps(link_, &waiter, count_two, &n, &e) == 0 && n == 2);
	join(pid);
	/* The rest of the first answer is not an answer to the next question. */
	pid = script(MSG_C_INFO, say_state);
	CHECK(link_info(link_, &waiter, &st, &e) == 0);
	join(pid);
	tear_down();
}

static void say_call(uint32_t chan)
{
	say(MSG_C_CALL, chan, TAG_CALL, 9, TAG_STATE, "running");
	say_plain(MSG_C_END, chan);
}

static void say_no_call(uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	CHECK(field_put_c(&b, TAG_KIND, "not_found") == 0);
	CHECK(field_put_c(&b, TAG_CODE, "call.not_found") == 0);
	say_raw(MSG_C_ERROR, chan, buf_str(&b));
}

static void one_call_is_found_or_is_an_error(void)
{
	struct link_call_row row = { 0 };
	pid_t pid;

	set_up(3);
	pid = script(MSG_C_CALLS, say_call);
	CHECK(link_call_find(link_, &waiter, 9, NULL, &row, &e) == 0);
	CHECK(row.call == 9 && row.running && row.result.fields.n == 0);
	join(pid);
	pid = script(MSG_C_CALLS, say_no_call);
	CHECK(link_call_find(link_, &waiter, 0, "mine", &row, &e) == -1);
	CHECK(e.kind == ERR_NOT_FOUND && row.call == 9);
	CHECK_STR(e.code, "call.not_found");
	join(pid);
	tear_down();

	set_up(0);
	pid = script(MSG_C_CALLS, say_unknown);
	CHECK(link_call_find(link_, &waiter, 9, NULL, &row, &e) == -1);
	CHECK_STR(e.code, "call.none");
	join(pid);
	tear_down();
}

static void die(uint32_t chan)
{
	(void)chan;
	CHECK(shutdown(peer, SHUT_RDWR) == 0);
}

static void a_warden_that_dies_is_an_error_and_so_is_what_follows(void)
{
	struct link_switched switched;
	struct sandbox_status st;
	pid_t pid;

	set_up(3);
	pid = script(MSG_C_SWITCH, die);
	CHECK(link_switch(link_, &waiter, &(struct link_switch){ .seal = "x" }, &switched, &e) ==
	      -1);
	CHECK_STR(e.code, "sandbox.gone");
	CHECK(closed_times == 1);
	CHECK(link_info(link_, &waiter, &st, &e) == -1);
	CHECK_STR(e.code, "sandbox.gone");
	join(pid);
	tear_down();
}

T_MAIN(T(the_state_is_waited_for), T(another_answer_is_an_error),
       T(a_wait_ends_at_its_deadline_or_by_its_cancel), T(a_lease_that_is_not_given_is_given_up),
       T(a_list_ends_when_its_reader_has_enough), T(one_call_is_found_or_is_an_error),
       T(a_warden_that_dies_is_an_error_and_so_is_what_follows))
