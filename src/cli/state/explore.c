/* SPDX-License-Identifier: Apache-2.0 */
/* cay explore: a command in several forks, of which the best one stays. */
#include "cli/state/explore.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/context.h"
#include "cli/output.h"
#include "ops/destroy.h"
#include "ops/diff.h"
#include "ops/fork.h"

enum { MOST = 256 };

static struct {
	uint64_t count, pick, timeout_ms;
	const char *name;
	bool first_success, json, quiet;
} o;

static struct opt opts[] = {
	{ "count", 'c', OPT_COUNT, "N", "How many forks; default: 2", &o.count },
	{ "pick", 0, OPT_COUNT, "I", "Keep fork I and drop the others", &o.pick },
	{ "first-success", 0, OPT_FLAG, NULL,
	  "Keep the first one that ends with 0; stop and drop the others", &o.first_success },
	{ "name", 'n', OPT_TEXT, "NAME", "Names of the forks: NAME-1, NAME-2 and so on", &o.name },
	{ "timeout", 0, OPT_DURATION, "TIME", "End each command after this time", &o.timeout_ms },
	{ "json", 0, OPT_FLAG, NULL, "The result as JSON, without what the commands print",
	  &o.json },
	{ "quiet", 'q', OPT_FLAG, NULL, "Only the result", &o.quiet },
	{ 0 },
};

struct branches {
	struct branch *b;
	int made;
};

static int add_branch(void *ctx, unsigned i, const struct creation *born)
{
	struct branches *f = ctx;

	f->b[i].number = (int)i + 1;
	(void)str_copy(f->b[i].id, sizeof f->b[i].id, str_of(born->row.id));
	f->made = (int)i + 1;
	return 0;
}

static int measure(struct cay *s, const struct fork_source *from, struct branch *b, int n,
		   struct err *e)
{
	auto_done(diff_view_done) struct diff_view old = { 0 };
	struct snapshot_row was = { 0 };

	(void)str_copy(was.id, sizeof was.id, str_of(from->holder));
	(void)str_copy(was.sandbox, sizeof was.sandbox, str_of(from->of.recipe_of));
	(void)str_copy(was.top, sizeof was.top, str_of(from->of.top));
	if (diff_view_open_snapshot(s, &was, &old, e) < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		auto_done(diff_view_done) struct diff_view now = { 0 };

		if (diff_view_open_any(s, b[i].id, &now, e) < 0 ||
		    diff_sum(&old, &now, &b[i].totals, e) < 0)
			return -1;
	}
	return 0;
}

static int print_table(const struct branch *b, int n)
{
	static const struct out_col cols[] = {
		{ .title = "FORK", .right = true },
		{ .title = "ID" },
		{ .title = "RESULT" },
		{ .title = "TIME", .right = true },
		{ .title = "FILES", .right = true },
		{ .title = "LINES", .right = true },
	};
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	int r = 0;

	for (int i = 0; i < n; i++) {
		char time[OUT_NUMBER];

		r |= out_cellf(&t, OUT_PLAIN, "%d", b[i].number);
		r |= out_cell(&t, OUT_PLAIN, b[i].id);
		if (b[i].code < 0)
			r |= out_cell(&t, OUT_DIM, "stopped");
		else
			r |= out_cellf(&t, b[i].code ? OUT_YELLOW : OUT_GREEN, "exit %d",
				       b[i].code);
		r |= out_cell(&t, OUT_PLAIN, out_duration(b[i].duration_us, time));
		r |= out_cellf(&t, OUT_PLAIN, "%llu", (unsigned long long)b[i].totals.files);
		r |= out_cellf(&t, OUT_PLAIN, "+%llu -%llu", (unsigned long long)b[i].totals.added,
			       (unsigned long long)b[i].totals.removed);
	}
	if (r == 0)
		out_table_print(&t, stdout, out_width(), true, false);
	return r;
}

static void print_json(const struct branch *b)
{
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_num(&j, "fork", b->number);
	out_json_c(&j, "id", b->id);
	if (b->code < 0)
		out_json_raw(&j, "exit_code", NULL);
	else
		out_json_num(&j, "exit_code", b->code);
	out_json_ms(&j, "duration_ms", b->duration_us);
	out_json_num(&j, "files", (int64_t)b->totals.files);
	out_json_num(&j, "added_lines", (int64_t)b->totals.added);
	out_json_num(&j, "removed_lines", (int64_t)b->totals.removed);
	out_json_bool(&j, "kept", b->kept);
	out_json_close(&j, '}');
	out_json_line(&j);
}

/* All, where nobody is there to choose. */
static void choose(struct branch *b, int n, int winner)
{
	char text[16] = "";
	int pick = (int)o.pick;

	if (o.first_success)
		pick = winner + 1;
	else if (!pick && !o.json && isatty(STDIN_FILENO)) {
		fprintf(stderr, "Keep which one? [1-%d, all, none] ", n);
		(void)fflush(stderr);
		if (fgets(text, sizeof text, stdin))
			pick = strncmp(text, "none", 4) == 0 ? -1 : atoi(text);
	}
	for (int i = 0; i < n; i++)
		b[i].kept = o.first_success ? i + 1 == pick : pick == 0 || i + 1 == pick;
}

static int drop(struct cay *s, const char *id, struct err *e)
{
	return op_destroy(s, id, e);
}

static int drop_others(struct cay *s, const struct branch *b, int n, struct err *e)
{
	struct err one = { 0 };
	int r = 0;

	for (int i = 0; i < n; i++)
		if (!b[i].kept && drop(s, b[i].id, &one) < 0) {
			*e = one;
			r = -1;
		}
	return r;
}

static int conclude(struct cay *s, struct branch *b, int n, int winner, struct err *e)
{
	int kept = -1, nkept = 0;

	if (!o.json && print_table(b, n) < 0)
		return err_sys(e, ENOMEM, "show the result");
	choose(b, n, winner);
	if (drop_others(s, b, n, e) < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		if (o.json)
			print_json(&b[i]);
		nkept += b[i].kept;
		kept = b[i].kept ? i : kept;
	}
	if (!o.json && !o.quiet && nkept == 1)
		fprintf(stderr, "cay: fork %d is kept: %s\n", b[kept].number, b[kept].id);
	/* Of one that was chosen, its own code, if it came to have one; of several, whether any
	 * succeeded. */
	if (nkept == 1 && b[kept].code != 0)
		return b[kept].code > 0 ? b[kept].code : 1;
	return winner < 0 ? 1 : 0;
}

/* What would end us comes to a descriptor instead. */
static int take_signals(sigset_t *ret_before)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* As it would have been without us taking it. */
static void end_by(int sig, const sigset_t *before)
{
	fprintf(stderr, "cay: stopped; the forks are gone\n");
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

static int explore(struct cmd_ctx *ctx, struct cay *s, struct fork_source *from, struct branch *b,
		   int n, struct err *e)
{
	sigset_t before;
	auto_close int sig_fd = take_signals(&before);
	const struct explore_opts how = {
		.argv = ctx->args + 1,
		.argc = ctx->nargs - 1,
		.timeout_ms = o.timeout_ms,
		.first_success = o.first_success,
		.quiet = o.quiet || o.json,
		.sig_fd = sig_fd,
		.mask = &before,
	};
	struct branches made = { .b = b };
	const struct fork_spec f = { (unsigned)n, o.name, true, add_branch, &made };
	struct explored got = { .winner = -1 };
	struct err ignored = { 0 };
	int r = fork_from(s, from, &f, e);

	if (r == 0)
		r = explore_run(b, (unsigned)n, &how, &got, e);
	if (r == 0 && got.signal) {
		(void)drop_others(s, b, made.made, &ignored);
		fork_source_close(s, from);
		end_by(got.signal, &before);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		(void)drop_others(s, b, made.made, &ignored);
		return -1;
	}
	/* What the commands have done is not dropped for want of its size. */
	if (measure(s, from, b, n, e) < 0)
		return err_hint(e, "the commands have ended, and all forks are kept: cay ls");
	return conclude(s, b, n, got.winner, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	struct fork_source from = { 0 };
	auto_free struct branch *b = NULL;
	int n = o.count ? (int)o.count : 2, r;

	if (cmd_need_args(ctx, 1, -1, "a sandbox or snapshot", e) < 0)
		return -1;
	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "there is no command to run");
	if (o.count > MOST || o.pick > (uint64_t)n)
		return err_set(e, ERR_INVALID,
			       o.count > MOST ? "--count: at most %d" : "--pick: at most %d",
			       o.count > MOST ? MOST : n);
	if (o.pick && o.first_success)
		return cmd_usage(ctx, e, "--pick or --first-success, not both");
	b = calloc((size_t)n, sizeof *b);
	if (!b)
		return err_sys(e, ENOMEM, "explore");
	if (cli_open(&s, e) < 0 || fork_source_open(&s, ctx->args[0], &from, e) < 0)
		return -1;
	r = explore(ctx, &s, &from, b, n, e);
	fork_source_close(&s, &from);
	return r;
}

const struct cmd cmd_explore = {
	.name = "explore",
	.synopsis = "[options] SANDBOX|SNAPSHOT [--] CMD [ARG...]",
	.summary = "Run a command in several forks at once, and keep the best",
	.details =
		"Each fork begins with the files that the sandbox has now; CAY_FORK is its number, "
		"from 1 on. What the commands print is passed on with the number before each line. "
		"In the end a table shows their exit codes, and how much each has changed. On a "
		"terminal you are asked which to keep; otherwise all are, unless --pick or "
		"--first-success says which. The exit code is that of the one kept. Ctrl-C stops "
		"the commands and drops all forks.",
	.examples = "cay explore work --count 4 -- ./try-fix\n"
		    "cay explore work -c 8 --first-success -- sh -c './fix $CAY_FORK && make test'",
	.run = run,
	.opts = opts,
	.runs_commands = true,
	.complete = "sandbox",
	.stop_at = 2,
};
