/* SPDX-License-Identifier: Apache-2.0 */
/* cay explore: runs a command in several forks; the best fork stays. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/context.h"
#include "cli/hints.h"
#include "cli/output.h"
#include "ops/explore.h"
#include "ops/json.h"

enum { LINE = 64 * 1024 };

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

/* The unfinished output line of each fork. */
struct lines {
	struct buf v[EXPLORE_MOST];
};

static void lines_done(struct lines *l)
{
	for (size_t i = 0; i < ARRAY_LEN(l->v); i++)
		buf_done(&l->v[i]);
}
DEFINE_AUTO(struct lines, lines_done)

static void print_line(const struct branch *b, struct buf *line)
{
	printf("[%d] ", b->number);
	(void)fwrite(line->data ? line->data : "", 1, line->len, stdout);
	putchar('\n');
	buf_clear(line);
}

/*
 * Prints whole lines, so that the output of several commands does not mix; splits very long lines.
 */
static void on_output(void *ctx, const struct branch *b, enum call_stream stream, struct str data)
{
	struct buf *line = &((struct lines *)ctx)->v[b->number - 1];

	(void)stream;
	while (data.n) {
		const char *nl = memchr(data.p, '\n', data.n);
		size_t part = nl ? (size_t)(nl - data.p) : data.n;

		if (part > LINE - line->len)
			part = LINE - line->len, nl = NULL;
		if (buf_add(line, data.p, part) < 0 || nl || line->len == LINE)
			print_line(b, line);
		part += nl != NULL;
		data = (struct str){ data.p + part, data.n - part };
	}
	(void)fflush(stdout);
}

static void print_why(const struct branch *b)
{
	char text[sizeof b->why.msg + 40];

	hint_message(&b->why, text, sizeof text);
	fputs("cay: ", stderr);
	out_safe_to(stderr, str_of(text));
	putc('\n', stderr);
}

static void on_ended(void *ctx, const struct branch *b)
{
	struct buf *line = &((struct lines *)ctx)->v[b->number - 1];
	bool plain =
		!b->reason[0] || strcmp(b->reason, "exit") == 0 || strcmp(b->reason, "signal") == 0;

	if (line->len)
		print_line(b, line);
	(void)fflush(stdout);
	if (b->why.kind != ERR_NONE)
		print_why(b);
	if (b->code < 0)
		fprintf(stderr, "cay: fork %d (%s) was stopped\n", b->number, b->id);
	else
		fprintf(stderr, "cay: fork %d (%s) ended with %d%s%s\n", b->number, b->id, b->code,
			plain ? "" : ": ", plain ? "" : b->reason);
	if (b->denied)
		fprintf(stderr,
			"cay: fork %d: the policy refused %u connections; cay trace %s "
			"--kind net shows them\n",
			b->number, b->denied, b->id);
}

static int print_table(const struct branch *b, unsigned n)
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

	for (unsigned i = 0; i < n; i++) {
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

/* Keep all forks if there is no terminal to ask. */
static void choose(struct explored *x)
{
	char text[16] = "";
	int pick = (int)o.pick;

	if (o.first_success)
		pick = x->winner + 1;
	else if (!pick && !o.json && isatty(STDIN_FILENO)) {
		fprintf(stderr, "Keep which one? [1-%u, all, none] ", x->n);
		(void)fflush(stderr);
		if (fgets(text, sizeof text, stdin))
			pick = strncmp(text, "none", 4) == 0 ? -1 : atoi(text);
	}
	for (unsigned i = 0; i < x->n; i++)
		x->v[i].kept = (pick == 0 && !o.first_success) || (int)i + 1 == pick;
}

static int conclude(struct cay *c, struct explored *x, struct err *e)
{
	const struct branch *kept = NULL;
	int nkept = 0;

	if (!o.json && print_table(x->v, x->n) < 0)
		return err_sys(e, ENOMEM, "show the result");
	choose(x);
	if (op_explore_keep(c, x, e) < 0)
		return -1;
	for (unsigned i = 0; i < x->n; i++) {
		if (o.json)
			PRINT_JSON(json_branch, &x->v[i]);
		nkept += x->v[i].kept;
		kept = x->v[i].kept ? &x->v[i] : kept;
	}
	if (!o.json && !o.quiet && nkept == 1)
		fprintf(stderr, "cay: fork %d is kept: %s\n", kept->number, kept->id);
	/*
	 * For one chosen fork, return its own exit code if it has one; for several, whether any
	 * succeeded.
	 */
	if (nkept == 1 && kept->code != 0)
		return kept->code > 0 ? kept->code : 1;
	return x->winner < 0 ? 1 : 0;
}

/* Receive terminating signals through a descriptor. */
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

/* End by the signal, as without the descriptor. */
static void end_by(int sig_fd, const sigset_t *before)
{
	struct signalfd_siginfo si;

	if (read(sig_fd, &si, sizeof si) != sizeof si)
		return;
	fprintf(stderr, "cay: stopped; the forks are gone\n");
	(void)signal((int)si.ssi_signo, SIG_DFL);
	(void)raise((int)si.ssi_signo);
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

/* Runs op_explore(); a signal cancels it. */
static int explore(struct cay *c, const struct explore_spec *spec, struct explored *ret,
		   struct err *e)
{
	sigset_t before;
	auto_close int sig_fd = take_signals(&before);
	int r;

	c->wait.cancel_fd = sig_fd;
	r = op_explore(c, spec, ret, e);
	c->wait.cancel_fd = FD_NONE;
	if (r < 0 && strcmp(e->code, "cancelled") == 0)
		end_by(sig_fd, &before);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(explored_done) struct explored x = { 0 };
	auto_done(lines_done) struct lines lines = { 0 };
	auto_free const char **argv = calloc((size_t)ctx->nargs + 1, sizeof *argv);
	bool quiet = o.quiet || o.json;
	struct explore_spec spec = { .count = o.count ? (unsigned)o.count : 2,
				     .name = o.name,
				     .timeout_ms = o.timeout_ms,
				     .first_success = o.first_success,
				     .output = quiet ? NULL : on_output,
				     .ended = quiet ? NULL : on_ended,
				     .ctx = &lines };

	if (cmd_need_args(ctx, 1, -1, "a sandbox or snapshot", e) < 0)
		return -1;
	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "there is no command to run");
	if (o.count > EXPLORE_MOST || o.pick > spec.count)
		return err_set(e, ERR_INVALID,
			       o.count > EXPLORE_MOST ? "--count: at most %u"
						      : "--pick: at most %u",
			       o.count > EXPLORE_MOST ? EXPLORE_MOST : spec.count);
	if (o.pick && o.first_success)
		return cmd_usage(ctx, e, "--pick or --first-success, not both");
	for (size_t i = 0; i < ARRAY_LEN(lines.v); i++)
		lines.v[i] = (struct buf)BUF_INIT(LINE);
	spec.source = ctx->args[0];
	if (!argv)
		return err_sys(e, ENOMEM, "explore");
	for (int i = 1; i < ctx->nargs; i++)
		argv[i - 1] = ctx->args[i];
	spec.argv = argv;
	if (cli_open(&c, e) < 0 || explore(&c, &spec, &x, e) < 0)
		return -1;
	return conclude(&c, &x, e);
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
