/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue, spawner and worker together, with real processes: this program starts itself as the
 * worker.
 */
#include "ops/job/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "loop/wait.h"
#include "ops/job/spawn.h"
#include "t.h"

static int run_echo(struct job_run *r, struct err *e)
{
	(void)e;
	return buf_add_str(r->out, r->in);
}

static int run_fail(struct job_run *r, struct err *e)
{
	(void)r;
	(void)err_set(e, ERR_CONFLICT, "not now");
	return err_code(e, "sandbox.busy", "x");
}

static int run_die(struct job_run *r, struct err *e)
{
	(void)r;
	(void)e;
	(void)raise(SIGKILL);
	return 0;
}

/* Waits like an operation. */
static int run_wait(struct job_run *r, struct err *e)
{
	struct progress p = { "begun", 0, 1 };
	bool never = false;
	int k;

	r->cay->progress(r->cay->progress_ctx, &p);
	k = wait_until(&r->cay->wait, &never);
	if (k == -ETIMEDOUT)
		return err_set(e, ERR_TIMEOUT, "time is up");
	(void)err_sys(e, -k, "waited");
	return err_code(e, "cancelled", NULL);
}

static int run_give(struct job_run *r, struct err *e)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	CHECK(write(pair[1], "hi", 2) == 2);
	r->fds[r->nfds++] = pair[0];
	r->fds[r->nfds++] = pair[1];
	return 0;
}

static int run_child(struct job_run *r, struct err *e)
{
	pid_t pid = fork();

	(void)e;
	if (pid == 0)
		_exit(0);
	return buf_printf(r->out, "%d", (int)pid);
}

static const struct job_kind kinds[] = { { "echo", 0, run_echo },
					 { "fail", 0, run_fail },
					 { "die", 0, run_die },
					 { "wait", 0, run_wait },
					 { "give", 0, run_give },
					 { "child", 0, run_child },
					 { "die-read", JOB_READ_ONLY, run_die } };
static const struct job_table table = { kinds, ARRAY_LEN(kinds) };

/* Before main(): become a worker if started as one. */
static void __attribute__((constructor)) be_worker(void)
{
	const struct cay_config config = { 0 };
	struct err e = { 0 };
	struct cay c;
	int r;

	if (!getenv("JOB_TEST_WORKER"))
		return;
	if (cay_open(&c, &config, &e) < 0)
		_exit(7);
	r = job_worker_run(&c, &table, NULL, WORKER_SOCKET, WORKER_CANCEL, &e);
	cay_close(&c);
	_exit(r == 0 ? 0 : 8);
}

static struct loop loop;
static struct waiter waiter;
static struct job_queue queue;
static struct job_spawner spawner;
static char state[64];

static struct {
	bool done;
	int times, nfds, progress;
	int fds[JOB_FDS];
	char out[256];
	struct err why;
	struct job *cancel; /* at the first progress */
} got;

static void on_done(void *ctx, const struct job_answer *a, const struct err *why)
{
	(void)ctx;
	got.done = true;
	got.times++;
	if (why)
		got.why = *why;
	if (a) {
		(void)str_copy(got.out, sizeof got.out, a->out);
		got.nfds = a->nfds;
		memcpy(got.fds, a->fds, sizeof got.fds);
	}
}

static void on_progress(void *ctx, const struct job_progress *p)
{
	(void)ctx;
	CHECK_STR(p->stage, "begun");
	got.progress++;
	if (got.cancel)
		job_cancel(got.cancel);
}

static void set_up(void)
{
	static char *argv[] = { "worker", NULL }, env[128];
	static char *envp[] = { "JOB_TEST_WORKER=1", env, NULL };
	struct job_host host;

	t_scratch(state, sizeof state);
	(void)snprintf(env, sizeof env, "CAY_STATE=%s/state", state);
	CHECK(loop_init(&loop) == 0);
	waiter = (struct waiter){ .loop = &loop, .cancel_fd = FD_NONE };
	spawner = (struct job_spawner){
		.loop = &loop, .program = "/proc/self/exe", .argv = argv, .envp = envp
	};
	job_spawner_init(&spawner);
	job_spawner_serve(&spawner, &queue);
	host = job_spawner_host(&spawner);
	job_queue_init(&queue, &loop, &table, &host, 1, 1);
}

static void tear_down(void)
{
	job_queue_done(&queue);
	job_spawner_done(&spawner);
	loop_done(&loop);
	t_sweep(t_me);
}

static void ask(const char *kind, uint64_t ms)
{
	const struct job_spec spec = { .kind = kind,
				       .key = "box",
				       .in = STR("hello"),
				       .timeout_ms = ms,
				       .done = on_done,
				       .progress = on_progress };
	struct err e = { 0 };

	memset(&got, 0, sizeof got);
	got.cancel = job_start(&queue, &spec, &e);
	CHECK(got.cancel);
	if (strcmp(kind, "wait") != 0 || ms)
		got.cancel = NULL;
	waiter.deadline_ns = clock_mono_ns() + 8 * NS_PER_S;
	CHECK(wait_until(&waiter, &got.done) == 0);
	waiter.deadline_ns = 0;
	CHECK(got.times == 1);
}

static void a_process_does_job_after_job(void)
{
	pid_t first;

	set_up();
	ask("echo", 0);
	CHECK_STR(got.out, "hello");
	first = spawner.processes[0].pid;
	ask("fail", 0);
	CHECK(got.why.kind == ERR_CONFLICT);
	CHECK_STR(got.why.code, "sandbox.busy");
	ask("echo", 0);
	CHECK(spawner.processes[0].pid == first);
	tear_down();
}

static void a_worker_that_is_killed_is_replaced(void)
{
	set_up();
	ask("die", 0);
	CHECK_STR(got.why.code, "outcome.unknown");
	ask("echo", 0);
	CHECK_STR(got.out, "hello");
	ask("die-read", 0); /* fails twice: it runs once more */
	CHECK_STR(got.why.code, "outcome.unknown");
	ask("echo", 0);
	CHECK_STR(got.out, "hello");
	tear_down();
}

static void a_wait_ends_at_the_deadline_and_when_cancelled(void)
{
	set_up();
	ask("wait", 50);
	CHECK(got.why.kind == ERR_TIMEOUT && got.progress == 1);
	ask("wait", 0);
	CHECK_STR(got.why.code, "cancelled");
	ask("echo", 0); /* must not be cancelled too */
	CHECK_STR(got.out, "hello");
	tear_down();
}

static void descriptors_go_with_the_answer(void)
{
	char text[2];

	set_up();
	ask("give", 0);
	CHECK(got.nfds == 2);
	CHECK(read(got.fds[0], text, 2) == 2 && memcmp(text, "hi", 2) == 0);
	(void)close(got.fds[0]);
	(void)close(got.fds[1]);
	tear_down();
}

static void children_that_a_job_left_are_reaped(void)
{
	char path[64];
	pid_t pid;

	set_up();
	ask("child", 0);
	pid = (pid_t)strtol(got.out, NULL, 10);
	CHECK(pid > 0);
	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	for (int i = 0; i < 500 && access(path, F_OK) == 0; i++)
		CHECK(wait_pause(&waiter, 10 * NS_PER_MS) == 0);
	CHECK(access(path, F_OK) < 0);
	tear_down();
}

static bool gone;

static void on_gone(void *ctx, int slot)
{
	(void)ctx;
	CHECK(slot == 0);
	gone = true;
}

static void workers_end_when_the_queue_does(void)
{
	set_up();
	ask("echo", 0);
	job_queue_done(&queue);
	spawner.gone = on_gone;
	waiter.deadline_ns = clock_mono_ns() + 5 * NS_PER_S;
	CHECK(wait_until(&waiter, &gone) == 0);
	CHECK(job_spawner_count(&spawner) == 0);
	loop_done(&loop);
	t_sweep(t_me);
}

T_MAIN(T(a_process_does_job_after_job), T(a_worker_that_is_killed_is_replaced),
       T(a_wait_ends_at_the_deadline_and_when_cancelled), T(descriptors_go_with_the_answer),
       T(children_that_a_job_left_are_reaped), T(workers_end_when_the_queue_does))
