/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations without a front: many sandboxes at once, by the job queue and its workers. Links ops
 * and link, and neither cli nor api.
 *
 * usage: ops_many CAY WARDEN SANDBOXES WORKERS
 *
 * All sandboxes are made and live at once. Then, for each: a command, a snapshot, another command,
 * a fork that has the second state, a rollback to the first, and the end of both. Commands run on
 * links that workers open and hand over. Prints nothing where all is well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/call.h"
#include "ops/create/create.h"
#include "ops/destroy.h"
#include "ops/fork.h"
#include "ops/job/handover.h"
#include "ops/job/spawn.h"
#include "ops/job/worker.h"
#include "ops/list.h"
#include "ops/snapshot.h"

/* ---- in a worker ---- */

static int job_create(struct job_run *r, struct err *e)
{
	const struct create_spec spec = { 0 };
	struct created made;

	return op_create(r->cay, &spec, 1, &made, e) < 0 ? -1
							 : job_give_link(r, made.id, STR_NONE, e);
}

static int job_count(struct job_run *r, struct err *e)
{
	const struct list_spec spec = { 0 };
	auto_done(list_result_done) struct list_result l = { 0 };
	int answered = 0;

	if (op_list(r->cay, &spec, &l, e) < 0)
		return -1;
	for (int i = 0; i < l.sandboxes.n; i++)
		answered += l.asked[i].known;
	return buf_printf(r->out, "%d", answered);
}

static int job_snapshot(struct job_run *r, struct err *e)
{
	const struct snapshot_spec spec = { .sandbox = r->key };
	struct snapshot_result res;

	return op_snapshot(r->cay, &spec, &res, e) < 0 ? -1 : buf_add_c(r->out, res.id);
}

static int job_rollback(struct job_run *r, struct err *e)
{
	char snapshot[ID_SIZE] = "";
	const struct rollback_spec spec = { .sandbox = r->key, .snapshot = snapshot };
	struct rollback_result res;

	(void)str_copy(snapshot, sizeof snapshot, r->in);
	return op_rollback(r->cay, &spec, &res, e);
}

static int take_id(void *ctx, unsigned i, const struct creation *n)
{
	(void)i;
	(void)str_copy(ctx, ID_SIZE, str_of(n->row.id));
	return 0;
}

static int job_fork(struct job_run *r, struct err *e)
{
	char id[ID_SIZE] = "";
	const struct fork_spec spec = { .count = 1, .fn = take_id, .ctx = id };

	return op_fork(r->cay, r->key, &spec, e) < 0 ? -1 : job_give_link(r, id, STR_NONE, e);
}

static int job_destroy(struct job_run *r, struct err *e)
{
	return op_destroy(r->cay, r->key, e);
}

static const struct job_kind kinds[] = {
	{ "create", 0, job_create },
	{ "count", JOB_READ_ONLY, job_count },
	{ "snapshot", JOB_EXCLUSIVE, job_snapshot },
	{ "rollback", JOB_EXCLUSIVE, job_rollback },
	{ "fork", JOB_EXCLUSIVE, job_fork },
	{ "destroy", JOB_EXCLUSIVE, job_destroy },
};
static const struct job_table table = { kinds, ARRAY_LEN(kinds) };

static int fail(const char *what, const struct err *e)
{
	fprintf(stderr, "ops_many: %s: %s (%s)\n", what, e->msg, e->code);
	return 1;
}

static int work(char **argv)
{
	const struct cay_config config = { 0 };
	struct err e = { 0 };
	struct cay c;
	int r;

	if (cay_open(&c, &config, &e) < 0)
		return fail("open", &e);
	(void)str_copy(c.programs.cay, sizeof c.programs.cay, str_of(argv[1]));
	(void)str_copy(c.programs.warden, sizeof c.programs.warden, str_of(argv[2]));
	r = job_worker_run(&c, &table, NULL, WORKER_SOCKET, WORKER_CANCEL, &e);
	cay_close(&c);
	return r < 0 ? fail("work", &e) : 0;
}

/* ---- in the process with the queue ---- */

/* What one sandbox goes through. A step is a job, or a command in the sandbox or its fork. */
static const struct step {
	const char *job;
	bool in_fork;
	const char *script, *want;
} steps[] = {
	{ .script = "echo one > /tmp/f; cat /tmp/f", .want = "one\n" },
	{ .job = "snapshot" },
	{ .script = "echo two > /tmp/f; cat /tmp/f", .want = "two\n" },
	{ .job = "fork" },
	{ .script = "cat /tmp/f", .want = "two\n", .in_fork = true },
	{ .job = "rollback" },
	{ .script = "cat /tmp/f", .want = "one\n" },
	{ .script = "cat /tmp/f", .want = "two\n", .in_fork = true },
	{ .job = "destroy", .in_fork = true },
	{ .job = "destroy" },
};

struct one {
	struct link *link, *fork;
	char snapshot[ID_SIZE];
	size_t step;
	struct link_call call;
	struct buf out;
};

static const struct link_ops no_ops = { 0 };
static struct loop loop;
static struct job_queue queue;
static struct one *ones;
static size_t total, made, over;
static int failed;

static void next_step(struct one *o);

static void give_up(const char *what, const struct err *e)
{
	failed = fail(what, e);
	loop_stop(&loop);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct one *o = container_of(c, struct one, call);

	if (stream == CALL_STDOUT && buf_add_str(&o->out, data) < 0)
		buf_clear(&o->out); /* what it printed is not what is wanted */
	link_call_taken(c, stream, data.n);
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct one *o = container_of(c, struct one, call);
	const struct step *s = &steps[o->step];
	struct err e = { 0 };

	if (why) {
		give_up("call", why);
		return;
	}
	if (res->code != 0 || !str_is(buf_str(&o->out), s->want)) {
		(void)err_set(&e, ERR_FAILED, "'%s' ended with %d and printed '%.*s'", s->script,
			      res->code, (int)o->out.len, o->out.data ? o->out.data : "");
		give_up("call", &e);
		return;
	}
	o->step++;
	next_step(o);
}

static void start_command(struct one *o)
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };
	const struct step *s = &steps[o->step];
	const char *const argv[] = { "sh", "-c", s->script, NULL };
	const struct call_spec spec = { .op = CALL_EXEC, .argv = argv };
	struct err e = { 0 };
	int r;

	buf_clear(&o->out);
	r = link_call(s->in_fork ? o->fork : o->link, &o->call, &spec, &ops);
	if (r < 0) {
		(void)err_sys(&e, -r, "'%s'", s->script);
		give_up("call", &e);
		return;
	}
	link_call_eof(&o->call);
}

static void on_step_done(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct job_answer answer = a ? *a : (struct job_answer){ 0 };
	struct one *o = ctx;
	const struct step *s = &steps[o->step];
	struct err e = { 0 };

	if (why) {
		give_up(s->job, why);
		return;
	}
	if (strcmp(s->job, "snapshot") == 0)
		(void)str_copy(o->snapshot, sizeof o->snapshot, answer.out);
	if (strcmp(s->job, "fork") == 0 &&
	    job_take_link(&loop, &answer, &no_ops, NULL, &o->fork, &e) < 0) {
		give_up(s->job, &e);
		return;
	}
	o->step++;
	next_step(o);
}

static void start_job(struct one *o)
{
	const struct step *s = &steps[o->step];
	const struct job_spec spec = { .kind = s->job,
				       .key = link_id(s->in_fork ? o->fork : o->link),
				       .in = str_of(o->snapshot),
				       .timeout_ms = 200000,
				       .done = on_step_done,
				       .ctx = o };
	struct err e = { 0 };

	if (!job_start(&queue, &spec, &e))
		give_up(s->job, &e);
}

static void next_step(struct one *o)
{
	if (failed)
		return;
	if (o->step < ARRAY_LEN(steps)) {
		if (steps[o->step].job)
			start_job(o);
		else
			start_command(o);
	} else if (++over == total) {
		loop_stop(&loop);
	}
}

static void on_counted(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct err e = { 0 };

	(void)ctx;
	if (why) {
		give_up("count", why);
		return;
	}
	if (a->out.n > 9 || strtoul(a->out.p, NULL, 10) != total) {
		(void)err_set(&e, ERR_FAILED, "%.*s of %zu sandboxes answer", STR_ARG(a->out),
			      total);
		give_up("count", &e);
		return;
	}
	for (size_t i = 0; i < total; i++)
		next_step(&ones[i]);
}

static void start_simple(const char *kind,
			 void (*done)(void *, const struct job_answer *, const struct err *),
			 void *ctx)
{
	const struct job_spec spec = {
		.kind = kind, .timeout_ms = 200000, .done = done, .ctx = ctx
	};
	struct err e = { 0 };

	if (!job_start(&queue, &spec, &e))
		give_up(kind, &e);
}

static void on_created(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct job_answer answer = a ? *a : (struct job_answer){ 0 };
	struct one *o = ctx;
	struct err e = { 0 };

	if (why)
		give_up("create", why);
	else if (job_take_link(&loop, &answer, &no_ops, NULL, &o->link, &e) < 0)
		give_up("create", &e);
	else if (++made == total)
		start_simple("count", on_counted, NULL);
}

static int run_all(char **argv, int workers)
{
	char *words[] = { argv[0], argv[1], argv[2], NULL };
	struct job_spawner spawner = {
		.loop = &loop, .program = "/proc/self/exe", .argv = words, .envp = environ
	};
	struct job_host host;

	job_spawner_init(&spawner);
	job_spawner_serve(&spawner, &queue);
	host = job_spawner_host(&spawner);
	if (loop_init(&loop) < 0)
		return 1;
	job_queue_init(&queue, &loop, &table, &host, workers, 1);
	for (size_t i = 0; i < total; i++) {
		ones[i].out = (struct buf)BUF_INIT(4096);
		start_simple("create", on_created, &ones[i]);
	}
	if (!failed && loop_run(&loop) < 0)
		return 1;
	for (size_t i = 0; i < total; i++) {
		link_free(ones[i].link);
		link_free(ones[i].fork);
		buf_done(&ones[i].out);
	}
	job_queue_done(&queue);
	job_spawner_done(&spawner);
	loop_done(&loop);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return work(argv);
	if (argc != 5)
		return 2;
	total = strtoul(argv[3], NULL, 10);
	ones = calloc(total, sizeof *ones);
	return ones ? run_all(argv, (int)strtoul(argv[4], NULL, 10)) : 1;
}
