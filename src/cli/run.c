/* SPDX-License-Identifier: Apache-2.0 */
/* cay run: create, run, destroy. */
#include <stdio.h>
#include <unistd.h>

#include "cli/command_line.h"
#include "cli/newborn.h"
#include "cli/output.h"
#include "cli/run_apply.h"
#include "cli/tx.h"

static struct sandbox_opts o;
static bool quiet;
static const char *apply;
static enum run_apply how;
static struct opt opts[] = {
	SANDBOX_OPTS_BUILD(o),
	SANDBOX_OPTS_CALL(o),
	SANDBOX_OPTS_RUN(o),
	SANDBOX_OPTS_KEEP(o),
	SANDBOX_OPTS_TX(o),
	{ "apply", 0, OPT_TEXT, "ask|never|always",
	  "Take changes below --dir over when the command has ended; default: never", &apply },
	LIMIT_OPTS_BUILD(o.limits),
	NET_OPTS_BUILD(o.net),
	LIMIT_OPTS_RUN(o.limits),
	{ "quiet", 'q', OPT_FLAG, NULL, "Say nothing about the sandbox itself", &quiet },
	{ 0 },
};

/* A command that is done by then leaves no row, and need not wait for one. */
enum { SHORT_MS = 10 };

/* While the command runs: the row says so, and a few others are looked after. */
static void while_it_runs(void *ctx)
{
	enum { A_FEW = 4 };
	struct newborn *n = ctx;
	struct err ignored = { 0 };

	(void)newborn_register(n, &ignored);
	if (n->catalog)
		(void)catalog_reconcile(n->catalog, &n->state, A_FEW, NULL, &ignored);
}

static int in_new(struct cmd_ctx *ctx, struct newborn *n, struct session_first *first,
		  struct err *e)
{
	const struct session s = { .warden_fd = n->warden_fd,
				   .first = first,
				   .later = while_it_runs,
				   .later_ms = SHORT_MS,
				   .ctx = n };

	return command_run(ctx, &s, &o, e);
}

static struct newborn *newborn_of_tx;

static int with_first(struct cmd_ctx *ctx, struct cli_store *s, const char *id,
		      struct session_first *first, struct err *e)
{
	(void)s;
	(void)id;
	return in_new(ctx, newborn_of_tx, first, e);
}

static int in_tx(struct cmd_ctx *ctx, struct newborn *n, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };

	newborn_of_tx = n;
	return cli_store_open_state(&s, e) < 0 ? -1 : tx_around(&s, n->row.id, with_first, ctx, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(newborn_done) struct newborn n = { NEWBORN_INIT };
	struct err undo = { 0 };
	int code;
	bool stays;

	if (ctx->nargs == 0)
		return cmd_usage(ctx, e, "there is no command to run");
	if (run_apply_parse(apply, o.dirs.n > 0, &how, e) < 0)
		return -1;
	o.outlives = how != RUN_APPLY_NEVER;
	stays = o.keep || o.outlives;
	if (newborn_create(&n, &o, !stays, e) < 0)
		return -1;
	if (stays && (newborn_await(&n, e) < 0 || newborn_release(&n, e) < 0)) {
		(void)newborn_destroy(&n, &undo);
		return -1;
	}
	/* One that is removed afterwards takes all changes with it anyway. */
	code = o.tx && o.keep ? in_tx(ctx, &n, e) : in_new(ctx, &n, NULL, e);
	if (code >= 0 && o.outlives) {
		int kept = run_apply(ctx, &n, how, code, e);

		if (kept < 0)
			return -1;
		o.keep |= kept;
	}
	if (code >= 0 && o.keep) {
		if (!quiet)
			fprintf(stderr, "cay: sandbox %s is kept; end it with: cay kill %s\n",
				n.row.id, n.row.id);
		return code;
	}
	if (code >= 0 && newborn_leave(&n))
		return code;
	if (newborn_destroy(&n, &undo) < 0 && code >= 0) {
		*e = undo;
		return -1;
	}
	return code;
}

const struct cmd cmd_run = {
	.name = "run",
	.synopsis = "[options] [--] CMD [ARG...]",
	.summary = "Run a command in a new sandbox, then remove the sandbox",
	.details =
		"The command sees the system of this machine, or another template, and may change "
		"all of it: every change is its own and is gone afterwards. It has no network "
		"unless --net or --allow gives it one. "
		"stdin, stdout and stderr are passed on byte by byte, signals too, and the exit "
		"code is the command's own: 124 after --timeout, 125 when cay itself failed, 126 "
		"when the command cannot be executed, 127 when it does not exist, 128+n when "
		"signal n ended it.",
	.examples = "cay run -- ls -la /\n"
		    "cay run --dir . -- make test\n"
		    "cay run --dir . --apply ask -- ./fix-it\n"
		    "cay run --user root -- rm -rf --no-preserve-root /\n"
		    "cay run -t -- bash",
	.run = run,
	.opts = opts,
	.runs_commands = true,
	.complete = "command",
	.stop_at = 1,
};
