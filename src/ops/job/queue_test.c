/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/job/queue_fixture.h"

static void a_job_is_done_by_a_worker_that_is_started_for_it(void)
{
	struct job_do d;
	uint32_t number;

	set_up(2, 1);
	ask("touch", "box", 'a');
	CHECK(starts[0] == 1 && starts[1] == 0);
	worker_begins(0);
	number = hear(0, &d);
	CHECK(number);
	CHECK_STR(d.kind, "touch");
	CHECK_STR(d.key, "box");
	CHECK(str_is(d.in, "in") && d.timeout_ms > JOB_TIMEOUT_MS - 1000 &&
	      d.timeout_ms <= JOB_TIMEOUT_MS);
	say_done(0, number, "fine", 2);
	turn();
	CHECK(told_of('a')->times == 1 && told_of('a')->nfds == 2);
	CHECK_STR(told_of('a')->out, "fine");
	tear_down();
}

static void a_host_may_answer_a_start_from_within(void)
{
	set_up(2, 1);
	at_once = true;
	ask("touch", "box", 'a');
	ask("touch", "cat", 'b');
	works(0);
	works(1);
	CHECK_STR(order, "ab");
	tear_down();
}

static void jobs_of_a_sandbox_begin_in_their_order_and_an_exclusive_one_is_alone(void)
{
	struct job_do d;

	set_up(4, 1);
	at_once = true;
	ask("show", "box", 'a');
	ask("show", "box", 'b');
	ask("alone", "box", 'c');
	ask("show", "box", 'd');
	ask("show", "cat", 'e');
	works(2); /* another sandbox does not wait */
	CHECK_STR(order, "e");
	CHECK(job_queue_waiting(&queue) == 2 && hear(3, &d) == 0);
	works(0);
	CHECK(hear(3, &d) == 0); /* b still runs */
	works(1);
	CHECK_STR(order, "eab");
	CHECK(job_queue_busy(&queue) == 1 && job_queue_waiting(&queue) == 1);
	works(0);
	works(0);
	CHECK_STR(order, "eabcd");
	tear_down();
}

static void a_long_job_does_not_take_a_quick_worker(void)
{
	set_up(1, 1);
	at_once = true;
	ask("diff", NULL, 'a');
	ask("diff", NULL, 'b');
	ask("show", NULL, 'c');
	works(0);
	CHECK_STR(order, "c");
	works(JOB_QUICK_MOST);
	works(JOB_QUICK_MOST);
	CHECK_STR(order, "cab");
	tear_down();
}

static void a_sandbox_has_a_limit_of_waiting_jobs_and_the_queue_has_one(void)
{
	char key[16] = "box";
	struct err e = { 0 };

	set_up(1, 1);
	for (int i = 0; i < LIMIT_JOBS_OF_KEY; i++)
		CHECK(try_ask("show", key, '.', 0, &e));
	CHECK(!try_ask("show", key, '.', 0, &e));
	CHECK(e.kind == ERR_LIMIT && err_http(e.kind) == 429);
	CHECK_STR(e.code, "jobs.full");
	for (int i = LIMIT_JOBS_OF_KEY; i < LIMIT_JOBS; i++) {
		(void)snprintf(key, sizeof key, "box%d", i);
		CHECK(try_ask("show", key, '.', 0, &e));
	}
	CHECK(!try_ask("show", "last", '.', 0, &e));
	CHECK(!try_ask("show", NULL, '.', 0, &e));
	CHECK_STR(e.code, "jobs.full");
	tear_down();
}

static void a_job_that_waits_past_its_deadline_never_runs(void)
{
	struct err e = { 0 };
	struct job_do d;

	set_up(1, 1);
	CHECK(try_ask("touch", "box", 'a', 1, &e));
	turn();
	turn();
	CHECK(told_of('a')->times == 1 && told_of('a')->why.kind == ERR_TIMEOUT);
	worker_begins(0);
	CHECK(hear(0, &d) == 0);
	tear_down();
}

static void a_dropped_job_that_waits_never_runs(void)
{
	struct job *j;
	struct job_do d;

	set_up(1, 1);
	at_once = true;
	ask("touch", "box", 'a');
	j = ask("touch", "box", 'b');
	job_drop(j);
	works(0);
	CHECK(hear(0, &d) == 0);
	CHECK_STR(order, "a");
	tear_down();
}

static void a_dropped_job_that_runs_is_cancelled_only_if_it_changes_nothing(void)
{
	struct job *read, *write;
	uint64_t n;

	set_up(2, 1);
	at_once = true;
	read = ask("show", "box", 'a');
	write = ask("touch", "box", 'b');
	job_drop(read);
	job_drop(write);
	CHECK(eventfd_read(cancel[0], &n) == 0);
	CHECK(eventfd_read(cancel[1], &n) < 0 && errno == EAGAIN);
	works(0);
	works(1);
	CHECK_STR(order, "");
	tear_down();
}

static void a_late_cancellation_does_not_hit_the_next_job(void)
{
	struct job *j;
	uint64_t n;

	set_up(1, 1);
	at_once = true;
	j = ask("touch", "box", 'a');
	ask("touch", "box", 'b');
	job_cancel(j);
	works(0); /* it finished before it saw the cancellation */
	CHECK(eventfd_read(cancel[0], &n) < 0 && errno == EAGAIN);
	works(0);
	CHECK_STR(order, "ab");
	tear_down();
}

static void a_cancelled_job_that_waits_is_told_so(void)
{
	set_up(1, 1);
	job_cancel(ask("touch", "box", 'a'));
	CHECK_STR(told_of('a')->why.code, "cancelled");
	tear_down();
}

static void nobody_knows_the_outcome_of_a_job_whose_worker_died(void)
{
	struct job_do d;

	set_up(1, 1);
	at_once = true;
	ask("alone", "box", 'a');
	ask("alone", "box", 'b');
	CHECK(hear(0, &d));
	worker_dies(0);
	CHECK_STR(told_of('a')->why.code, "outcome.unknown");
	CHECK(err_http(told_of('a')->why.kind) == 500);
	CHECK(starts[0] == 1); /* it pauses first */
	waiter.deadline_ns = 0;
	CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
	CHECK(starts[0] == 2);
	works(0);
	CHECK_STR(order, "ab");
	tear_down();
}

static void a_job_that_reads_runs_once_more_and_before_later_ones(void)
{
	struct job_do d;

	set_up(2, 1);
	at_once = true;
	ask("show", "box", 'a');
	ask("alone", "box", 'b');
	CHECK(hear(0, &d));
	worker_dies(0);
	CHECK(told_of('a')->times == 0);
	CHECK(hear(1, &d));
	CHECK_STR(d.kind, "show");
	worker_dies(1);
	CHECK(told_of('a')->times == 1);
	CHECK_STR(told_of('a')->why.code, "outcome.unknown");
	tear_down();
}

static void an_answer_that_came_before_the_end_counts(void)
{
	struct job_do d;
	uint32_t number;

	set_up(1, 1);
	at_once = true;
	ask("alone", "box", 'a');
	number = hear(0, &d);
	say_done(0, number, "just so", 1);
	worker_dies(0); /* the queue sees its end first */
	CHECK(told_of('a')->times == 1 && told_of('a')->nfds == 1);
	CHECK_STR(told_of('a')->out, "just so");
	tear_down();
}

static void a_socket_that_ends_first_waits_for_the_end_of_the_process(void)
{
	struct job_do d;

	set_up(1, 1);
	at_once = true;
	ask("alone", "box", 'a');
	CHECK(hear(0, &d));
	fd_close(&peer[0]);
	turn();
	CHECK(kills[0] == 1 && told_of('a')->times == 0); /* it may still be running */
	job_queue_gone(&queue, 0);
	CHECK_STR(told_of('a')->why.code, "outcome.unknown");
	job_queue_gone(&queue, 0);
	CHECK(told_of('a')->times == 1);
	tear_down();
}

static void a_worker_that_dies_idle_costs_no_job_anything(void)
{
	set_up(1, 1);
	at_once = true;
	ask("touch", "box", 'a');
	works(0);
	worker_dies(0);
	ask("touch", "box", 'b');
	CHECK(starts[0] == 1);
	CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
	works(0);
	CHECK_STR(order, "ab");
	tear_down();
}

static void rests_double_until_a_job_is_done(void)
{
	struct job_do d;
	uint64_t began = 0;

	set_up(1, 1);
	at_once = true;
	for (int i = 0; i < 2; i++) {
		ask("touch", "box", (char)('a' + i));
		if (i)
			CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
		CHECK(hear(0, &d));
		began = clock_mono_ns();
		worker_dies(0);
	}
	CHECK(queue.workers[0].rest_ms == 4 * JOB_REST_FIRST_MS);
	ask("touch", "box", 'c');
	CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
	CHECK(starts[0] == 2 || clock_mono_ns() - began > 2 * JOB_REST_FIRST_MS * NS_PER_MS);
	CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
	works(0);
	CHECK(queue.workers[0].rest_ms == 0);
	tear_down();
}

/* Messages that a compromised worker could send. */
static void whatever_breaks_the_protocol_ends_the_worker(void)
{
	for (int i = 0; i < 6; i++) {
		struct job_do d;
		uint32_t number;

		memset(kills, 0, sizeof kills);
		memset(told, 0, sizeof told);
		ntold = 0;
		set_up(1, 1);
		at_once = true;
		ask("touch", "box", 'a');
		number = hear(0, &d);
		if (i == 0)
			say_done(0, number + 1, "of another job", 0);
		else if (i == 1)
			say(0, W_DONE, number, STR("\x01"), 0);
		else if (i == 2)
			say(0, W_DO, number, STR_NONE, 1);
		else if (i == 3)
			say_done(0, number, "too many", 3);
		else if (i == 4)
			say(0, W_PROGRESS, number, STR("zz"), 0);
		else
			say(0, 99, number, STR_NONE, 0);
		turn();
		CHECK(kills[0] == 1 && told_of('a')->times == 0);
		job_queue_gone(&queue, 0);
		CHECK(told_of('a')->times == 1);
		tear_down();
	}
}

static void progress_is_told_until_the_end(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	const struct job_progress p = { "half", 1, 2 };
	struct job_do d;
	uint32_t number;

	set_up(1, 1);
	at_once = true;
	ask("touch", "box", 'a');
	number = hear(0, &d);
	CHECK(job_progress_put(&b, &p) == 0);
	say(0, W_PROGRESS, number, buf_str(&b), 0);
	turn();
	CHECK(told_of('a')->progress == 1 && told_of('a')->times == 0);
	say_done(0, number, "", 0);
	turn();
	CHECK(told_of('a')->times == 1);
	tear_down();
}

static void a_worker_that_ignores_the_deadline_is_killed(void)
{
	struct err e = { 0 };
	struct job_do d;
	uint64_t began;

	set_up(1, 1);
	at_once = true;
	began = clock_mono_ns();
	CHECK(try_ask("touch", "box", 'a', 1, &e));
	CHECK(hear(0, &d) && d.timeout_ms <= 1);
	CHECK(wait_pause(&waiter, (JOB_GRACE_MS - 500) * NS_PER_MS) == 0);
	CHECK(kills[0] == 0 || clock_mono_ns() - began > JOB_GRACE_MS * NS_PER_MS);
	CHECK(wait_pause(&waiter, 600 * NS_PER_MS) == 0);
	CHECK(kills[0] == 1 && told_of('a')->times == 0);
	worker_dies(0);
	CHECK_STR(told_of('a')->why.code, "outcome.unknown");
	tear_down();
}

static void a_start_that_fails_is_tried_again(void)
{
	set_up(1, 1);
	ask("touch", "box", 'a');
	job_queue_gone(&queue, 0);
	CHECK(told_of('a')->times == 0);
	at_once = true;
	CHECK(wait_pause(&waiter, (JOB_REST_FIRST_MS + 10) * NS_PER_MS) == 0);
	works(0);
	CHECK_STR(order, "a");
	tear_down();
}

static void a_queue_can_end_with_jobs_in_every_state(void)
{
	set_up(1, 1);
	at_once = true;
	ask("touch", "box", 'a');
	ask("alone", "box", 'b');
	ask("diff", "cat", 'c');
	tear_down();
	CHECK_STR(order, "");
}

static void jobs_that_cannot_be_are_refused(void)
{
	char long_key[JOB_KEY_SIZE + 1];
	struct err e = { 0 };

	memset(long_key, 'k', sizeof long_key);
	long_key[JOB_KEY_SIZE] = '\0';
	set_up(1, 1);
	CHECK(!try_ask("unknown", NULL, 'a', 0, &e) && e.kind == ERR_INVALID);
	CHECK(!try_ask("show", long_key, 'a', 0, &e) && e.kind == ERR_INVALID);
	CHECK(!try_ask("show", "/quick", 'a', 0, &e) && e.kind == ERR_INVALID);
	tear_down();
}

static void ask_as(const char *who, const char *kind, const char *key, char name)
{
	asker = who;
	ask(kind, key, name);
	asker = NULL;
}

static void askers_take_turns_however_many_sandboxes_one_names(void)
{
	char key[16];

	set_up(1, 1);
	for (int i = 0; i < 6; i++) {
		(void)snprintf(key, sizeof key, "box%d", i);
		ask_as("greedy", "touch", key, 'g');
	}
	ask_as("modest", "touch", NULL, 'm');
	ask_as("modest", "touch", NULL, 'm');
	ask_as(NULL, "touch", NULL, 'h');
	worker_begins(0);
	for (int i = 0; i < 9; i++)
		works(0);
	CHECK_STR(order, "gmhgmgggg");
	tear_down();
}

static void an_asker_leaves_a_worker_to_others(void)
{
	struct job_do d;

	set_up(3, 1);
	at_once = true;
	for (int i = 0; i < 4; i++)
		ask_as("greedy", "touch", NULL, 'g');
	CHECK(job_queue_busy(&queue) == 2 && job_queue_waiting(&queue) == 2);
	ask_as("modest", "touch", NULL, 'm');
	CHECK(job_queue_busy(&queue) == 3);
	works(2);
	CHECK_STR(order, "m");
	CHECK(hear(2, &d) == 0);
	works(0); /* and now the next one begins */
	CHECK(job_queue_busy(&queue) == 2 && job_queue_waiting(&queue) == 1);
	tear_down();
}

static void a_stranger_does_not_fill_the_lane_of_a_sandbox(void)
{
	struct err e = { 0 };

	set_up(1, 1);
	asker = "stranger";
	for (int i = 0; i < LIMIT_JOBS_OF_KEY; i++)
		CHECK(try_ask("show", "box", '.', 0, &e));
	CHECK(!try_ask("show", "box", '.', 0, &e));
	asker = "owner";
	CHECK(try_ask("show", "box", 'o', 0, &e));
	tear_down();
}

static void an_asker_has_a_limit_of_waiting_jobs(void)
{
	struct err e = { 0 };

	set_up(1, 1);
	asker = "greedy";
	for (int i = 0; i < LIMIT_JOBS_OF_ASKER; i++)
		CHECK(try_ask("show", NULL, '.', 0, &e));
	CHECK(!try_ask("show", NULL, '.', 0, &e));
	CHECK(e.kind == ERR_LIMIT);
	CHECK_STR(e.code, "jobs.full");
	asker = "modest";
	CHECK(try_ask("show", NULL, 'm', 0, &e));
	asker = NULL;
	tear_down();
}

static void a_dropped_job_leaves_no_turn_behind(void)
{
	struct job *j;

	set_up(1, 1);
	asker = "gone";
	j = ask("touch", "box", 'g');
	asker = NULL;
	job_drop(j);
	ask_as("other", "touch", NULL, 'o');
	worker_begins(0);
	works(0);
	CHECK_STR(order, "o");
	CHECK(!queue.askers);
	tear_down();
}

T_MAIN(T(a_job_is_done_by_a_worker_that_is_started_for_it),
       T(a_host_may_answer_a_start_from_within),
       T(jobs_of_a_sandbox_begin_in_their_order_and_an_exclusive_one_is_alone),
       T(a_long_job_does_not_take_a_quick_worker),
       T(a_sandbox_has_a_limit_of_waiting_jobs_and_the_queue_has_one),
       T(a_job_that_waits_past_its_deadline_never_runs), T(a_dropped_job_that_waits_never_runs),
       T(a_dropped_job_that_runs_is_cancelled_only_if_it_changes_nothing),
       T(a_late_cancellation_does_not_hit_the_next_job), T(a_cancelled_job_that_waits_is_told_so),
       T(nobody_knows_the_outcome_of_a_job_whose_worker_died),
       T(a_job_that_reads_runs_once_more_and_before_later_ones),
       T(an_answer_that_came_before_the_end_counts),
       T(a_socket_that_ends_first_waits_for_the_end_of_the_process),
       T(a_worker_that_dies_idle_costs_no_job_anything), T(rests_double_until_a_job_is_done),
       T(whatever_breaks_the_protocol_ends_the_worker), T(progress_is_told_until_the_end),
       T(a_worker_that_ignores_the_deadline_is_killed), T(a_start_that_fails_is_tried_again),
       T(a_queue_can_end_with_jobs_in_every_state), T(jobs_that_cannot_be_are_refused),
       T(askers_take_turns_however_many_sandboxes_one_names), T(an_asker_leaves_a_worker_to_others),
       T(a_stranger_does_not_fill_the_lane_of_a_sandbox), T(an_asker_has_a_limit_of_waiting_jobs),
       T(a_dropped_job_leaves_no_turn_behind))
