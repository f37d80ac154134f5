/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations without a front: many sandboxes at once, by several processes of which none has a
 * command line. Links ops and link, and neither cli nor api.
 *
 * usage: ops_many CAY WARDEN SANDBOXES WORKERS
 *
 * Each worker makes its share in one operation and waits until all workers have theirs. Then, for
 * each sandbox: a command, a snapshot, another command, a fork that has the second state, a
 * rollback to the first, and the end of both. Prints nothing where all is well.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "link/call.h"
#include "link/wait.h"
#include "ops/create/create.h"
#include "ops/destroy.h"
#include "ops/fork.h"
#include "ops/list.h"
#include "ops/snapshot.h"

enum { REPORT = 3, GO = 4, SHARE_MOST = CREATE_MOST };

static int fail(const char *what, const struct err *e)
{
	fprintf(stderr, "ops_many: %s: %s (%s)\n", what, e->msg, e->code);
	return 1;
}

/* One call, and what it printed. */
struct ran {
	struct link_call call;
	struct buf out;
	int code;
	bool over;
	struct err why;
};

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct ran *r = container_of(c, struct ran, call);

	if (stream == CALL_STDOUT && buf_add_str(&r->out, data) < 0)
		r->code = -1; /* what it printed will not be what is wanted */
	link_call_taken(c, stream, data.n);
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct ran *r = container_of(c, struct ran, call);

	r->over = true;
	r->code = res ? res->code : -1;
	if (why)
		r->why = *why;
}

/* 0 where the command in the sandbox printed just this. */
static int run(struct cay *c, const char *id, const char *script, const char *want, struct err *e)
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct call_spec spec = { .op = OP_EXEC, .argv = argv };
	struct ran r = { .out = BUF_INIT(4096) };
	auto_done(link_free) struct link *l = NULL;
	int k;

	if (link_connect(&c->wait, &c->state, id, &l, e) < 0)
		return -1;
	k = link_call(l, &r.call, &spec, &ops);
	if (k == 0) {
		link_call_eof(&r.call);
		k = wait_until(&c->wait, &r.over);
	}
	link_call_drop(&r.call);
	if (k < 0)
		return err_sys(e, -k, "call in '%s'", id);
	if (r.why.kind != ERR_NONE)
		*e = r.why;
	else if (r.code != 0 || !str_is(buf_str(&r.out), want))
		(void)err_set(e, ERR_FAILED, "'%s' in '%s' ended with %d and printed '%.*s'",
			      script, id, r.code, (int)r.out.len, r.out.data ? r.out.data : "");
	else
		k = 1;
	buf_done(&r.out);
	return k == 1 ? 0 : -1;
}

static int take_id(void *ctx, unsigned i, const struct creation *n)
{
	(void)i;
	(void)str_copy(ctx, ID_SIZE, str_of(n->row.id));
	return 0;
}

static int live(struct cay *c, const char *id, struct err *e)
{
	struct snapshot_spec snap = { .sandbox = id };
	struct snapshot_result first;
	struct rollback_spec back = { .sandbox = id, .snapshot = first.id };
	struct rollback_result res;
	char fork[ID_SIZE] = "";
	struct fork_spec f = { .count = 1, .fn = take_id, .ctx = fork };

	if (run(c, id, "echo one > /tmp/f; cat /tmp/f", "one\n", e) < 0 ||
	    op_snapshot(c, &snap, &first, e) < 0 ||
	    run(c, id, "echo two > /tmp/f; cat /tmp/f", "two\n", e) < 0 ||
	    op_fork(c, id, &f, e) < 0 || run(c, fork, "cat /tmp/f", "two\n", e) < 0 ||
	    op_rollback(c, &back, &res, e) < 0 || run(c, id, "cat /tmp/f", "one\n", e) < 0 ||
	    run(c, fork, "cat /tmp/f", "two\n", e) < 0)
		return -1;
	return op_destroy(c, fork, e) < 0 ? -1 : op_destroy(c, id, e);
}

static int work(char **argv, size_t n)
{
	static struct create_spec specs[SHARE_MOST];
	static struct created made[SHARE_MOST];
	const struct cay_config config = { 0 };
	struct cay c;
	struct err e = { 0 };
	char go;

	if (cay_open(&c, &config, &e) < 0)
		return fail("open", &e);
	(void)str_copy(c.programs.cay, sizeof c.programs.cay, str_of(argv[1]));
	(void)str_copy(c.programs.warden, sizeof c.programs.warden, str_of(argv[2]));
	if (op_create(&c, specs, n, made, &e) < 0)
		return fail("create", &e);
	if (write(REPORT, "r", 1) != 1 || read(GO, &go, 1) != 1)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (live(&c, made[i].id, &e) < 0)
			return fail(made[i].id, &e);
	cay_close(&c);
	return 0;
}

static int start(char **argv, size_t share, const int report[2], const int go[2])
{
	char count[16];
	char *words[] = { argv[0], argv[1], argv[2], count, NULL };
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int r;

	(void)snprintf(count, sizeof count, "%zu", share);
	r = posix_spawn_file_actions_init(&fa);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&fa, report[1], REPORT);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&fa, go[0], GO);
	if (r == 0)
		r = posix_spawn(&pid, "/proc/self/exe", &fa, NULL, words, environ);
	(void)posix_spawn_file_actions_destroy(&fa);
	return r;
}

/* All sandboxes are there at once before any worker goes on. */
static int check_all(size_t want)
{
	const struct cay_config config = { 0 };
	const struct list_spec spec = { 0 };
	struct list_result r = { 0 };
	struct cay c;
	struct err e = { 0 };
	size_t answered = 0;

	if (cay_open(&c, &config, &e) < 0 || op_list(&c, &spec, &r, &e) < 0)
		return fail("list", &e);
	for (int i = 0; i < r.sandboxes.n; i++)
		answered += r.asked[i].known;
	if (answered != want)
		fprintf(stderr, "ops_many: %zu of %zu sandboxes answer\n", answered, want);
	list_result_done(&r);
	cay_close(&c);
	return answered != want;
}

static int run_workers(char **argv, size_t sandboxes, size_t workers)
{
	/* Above the numbers that workers have them at. */
	int report[2], go[2], failed = 0, status;
	char c;

	if (pipe2(report, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		report[i] = fcntl(report[i], F_DUPFD_CLOEXEC, GO + 1);
		go[i] = fcntl(go[i], F_DUPFD_CLOEXEC, GO + 1);
	}
	for (size_t i = 0; i < workers; i++)
		if (start(argv, sandboxes / workers, report, go) != 0)
			return 1;
	(void)close(report[1]);
	for (size_t i = 0; i < workers; i++)
		if (read(report[0], &c, 1) != 1)
			return 1;
	failed |= check_all(sandboxes);
	for (size_t i = 0; i < workers; i++)
		if (write(go[1], "g", 1) != 1)
			return 1;
	while (wait(&status) > 0 || errno == EINTR)
		failed |= status != 0;
	return failed;
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return work(argv, strtoul(argv[3], NULL, 10));
	if (argc != 5)
		return 2;
	return run_workers(argv, strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
}
