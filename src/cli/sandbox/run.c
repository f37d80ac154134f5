/* SPDX-License-Identifier: Apache-2.0 */
/* cay run: creates a sandbox, runs a command, destroys the sandbox. */
#include <stdio.h>
#include <unistd.h>

#include "cli/call/command_line.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/sandbox/run_apply.h"
#include "cli/state/tx.h"
#include "ops/create/creation.h"

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
	{ "apply", 0, OPT_TEXT, "success|ask|always|never",
	  "Take changes below --dir over: if the command exits with 0, if you say yes, or in any case "
	  "(with --tx only if it exits with 0); default: never",
	  &apply },
	LIMIT_OPTS_BUILD(o.limits),
	NET_OPTS_BUILD(o.net),
	LIMIT_OPTS_RUN(o.limits),
	{ "quiet", 'q', OPT_FLAG, NULL, "Say nothing about the sandbox itself", &quiet },
	{ 0 },
};

static void on_started(void *ctx)
{
	creation_show(ctx, true);
}

static void on_ready(struct link *l, const struct link_ready *r)
{
	(void)l;
	call_print_warnings(r->fields);
}

static int run_in(struct cmd_ctx *ctx, struct creation *n, struct err *e)
{
	static const struct link_ops ops = { .ready = on_ready };
	auto_done(link_free) struct link *l = NULL;
	struct command c = { .o = &o, .started = on_started, .ctx = n };

	if (creation_link(n, &ops, &l, e) < 0)
		return -1;
	c.link = l;
	return command_run(ctx, &c, e);
}

/* Runs the command in its own transaction, which is committed if the command exits with 0. */
static int in_tx(struct cmd_ctx *ctx, struct creation *n, struct err *e)
{
	struct tx_result tx;
	struct err failed = { 0 };
	int code;

	if (op_tx_begin(n->cay, n->row.id, true, &tx, e) < 0)
		return -1;
	code = run_in(ctx, n, e);
	if (tx_finish(n->cay, &tx, code == 0, &failed) == 0)
		return code;
	*e = failed;
	return -1;
}

static int begin(struct creation *n, struct sandbox_spec *s, bool stays, struct err *e)
{
	struct err undo = { 0 };

	s->spec.ephemeral = !stays;
	if (creation_create(n, &s->spec, e) < 0)
		return -1;
	if (!stays || (creation_await(n, e) == 0 && creation_release(n, e) == 0))
		return 0;
	(void)creation_destroy(n, &undo);
	return -1;
}

static int finish(struct creation *n, int code, struct err *e)
{
	struct err undo = { 0 };

	if (code >= 0 && o.keep) {
		if (!quiet)
			fprintf(stderr, "cay: sandbox %s is kept; end it with: cay kill %s\n",
				n->row.id, n->row.id);
		return code;
	}
	if (code >= 0 && creation_leave(n))
		return code;
	if (creation_destroy(n, &undo) < 0 && code >= 0) {
		*e = undo;
		return -1;
	}
	return code;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(sandbox_spec_done) struct sandbox_spec s = { 0 };
	auto_done(creation_done) struct creation n = { CREATION_INIT };
	int code;

	if (ctx->nargs == 0)
		return cmd_usage(ctx, e, "there is no command to run");
	if (run_apply_parse(apply, o.dirs.n > 0, &how, e) < 0)
		return -1;
	o.outlives = how != RUN_APPLY_NEVER;
	if (sandbox_opts_spec(&o, &s, e) < 0 || cli_open_state(&c, e) < 0)
		return -1;
	creation_init(&n, &c);
	if (begin(&n, &s, o.keep || o.outlives, e) < 0)
		return -1;
	out_json_about(n.row.id);
	cli_print_warnings(&n.warnings);
	/* Without --keep the sandbox is removed with all changes, so it needs no transaction. */
	code = o.tx && o.keep ? in_tx(ctx, &n, e) : run_in(ctx, &n, e);
	if (run_apply_wants(how, o.tx, code)) {
		int kept = run_apply(ctx, &n, how, code, e);

		if (kept < 0)
			return -1;
		o.keep |= kept;
	} else if (code > 0 && o.outlives && !quiet) {
		fprintf(stderr, "cay: the command ended with code %d: nothing was applied\n", code);
	}
	return finish(&n, code, e);
}

const struct cmd cmd_run = {
	.name = "run",
	.synopsis = "[options] [--] CMD [ARG...]",
	.summary = "Run a command in a new sandbox, then remove the sandbox",
	.details =
		"The command sees the system of this machine, or another template, and may change "
		"all of it: every change is its own and is gone afterwards. It has no network "
		"unless --net or --allow gives it one. A --dir shows the host's directory as it is, "
		"with every change that is made there meanwhile, unless --copy copies it at the start. "
		"stdin, stdout and stderr are passed on byte by byte, signals too, and the exit "
		"code is the command's own: 124 after --timeout, 125 when cay itself failed, 126 "
		"when the command cannot be executed, 127 when it does not exist, 128+n when "
		"signal n ended it.",
	.examples = "cay run -- ls -la /\n"
		    "cay run --dir . -- make test\n"
		    "cay run --dir . --apply success -- ./fix-it\n"
		    "cay run --user root -- rm -rf --no-preserve-root /\n"
		    "cay run -t -- bash",
	.run = run,
	.opts = opts,
	.runs_commands = true,
	.complete = "command",
	.stop_at = 1,
};
