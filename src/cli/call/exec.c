/* SPDX-License-Identifier: Apache-2.0 */
/* cay exec and cay shell: run a command in an existing sandbox. */
#include <stdio.h>
#include <unistd.h>

#include "cli/call/command_line.h"
#include "cli/context.h"
#include "cli/state/tx.h"
#include "ops/connect.h"

static struct sandbox_opts o;
static bool detached;
static struct opt exec_opts[] = {
	{ "detach", 'd', OPT_FLAG, NULL,
	  "Do not wait: print the number of the call, which goes on by itself; see cay logs",
	  &detached },
	SANDBOX_OPTS_CALL(o),
	SANDBOX_OPTS_RUN(o),
	SANDBOX_OPTS_TX(o),
	LIMIT_OPTS_RUN(o.limits),
	{ 0 },
};

static int run_at(struct cmd_ctx *ctx, struct link *l, const struct create_plan *plan,
		  struct err *e)
{
	const struct command c = {
		.link = l, .o = &o, .plan = plan, .first = 1, .detached = detached
	};

	return command_run(ctx, &c, e);
}

static int in_tx(struct cmd_ctx *ctx, struct cay *c, const struct create_plan *plan, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	struct tx_result tx;
	struct err failed = { 0 };
	int code;

	if (op_tx_begin(c, ctx->args[0], true, &tx, e) < 0)
		return -1;
	code = op_connect(c, tx.id, &l, e);
	if (code == 0)
		code = run_at(ctx, l, plan, e);
	if (tx_finish(c, &tx, code == 0, &failed) == 0)
		return code;
	*e = failed;
	return -1;
}

static int in_sandbox(struct cmd_ctx *ctx, struct cay *c, const struct create_plan *plan,
		      struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	int r = op_connect(c, ctx->args[0], &l, e);

	/* Commands can run for long. */
	cli_let_go(c);
	return r < 0 ? -1 : run_at(ctx, l, plan, e);
}

static int run_one(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(sandbox_spec_done) struct sandbox_spec s = { 0 };
	auto_done(create_plan_done) struct create_plan plan = { 0 };

	if (sandbox_opts_spec(&o, &s, e) < 0 || cli_open_state(&c, e) < 0 ||
	    create_check(&c, &s.spec, &plan, e) < 0)
		return -1;
	return o.tx ? in_tx(ctx, &c, &plan, e) : in_sandbox(ctx, &c, &plan, e);
}

static int run_exec(struct cmd_ctx *ctx, struct err *e)
{
	if (cmd_need_args(ctx, 1, -1, "a sandbox", e) < 0)
		return -1;
	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "there is no command to run");
	if (detached && o.tx)
		return cmd_usage(ctx, e, "--detach and --tx: who would end the transaction?");
	return run_one(ctx, e);
}

static int run_shell(struct cmd_ctx *ctx, struct err *e)
{
	if (cmd_need_args(ctx, 1, 1, "a sandbox", e) < 0)
		return -1;
	o.tty = true;
	return run_one(ctx, e);
}

const struct cmd cmd_exec = {
	.name = "exec",
	.synopsis = "[options] ID [--] CMD [ARG...]",
	.summary = "Run a command in a sandbox",
	.details =
		"stdin, stdout, stderr, signals and the exit code are passed on as with cay run. "
		"Processes that the command leaves behind go on in the sandbox, and still belong "
		"to this call; with --tx they are ended if the command fails. With --detach the "
		"command outlives this cay: its input is empty, and the last 1 MiB of its output "
		"is kept for cay logs and cay attach.",
	.examples = "cay exec k3x9 -- npm test\n"
		    "cay exec work --call-id step-17 --timeout 5m -- make\n"
		    "tar c src | cay exec work -- tar x\n"
		    "cay exec -d work -- npm run dev",
	.run = run_exec,
	.opts = exec_opts,
	.runs_commands = true,
	.complete = "sandbox",
	.stop_at = 2,
};

static struct opt shell_opts[] = { SANDBOX_OPTS_CALL(o), { 0 } };

const struct cmd cmd_shell = {
	.name = "shell",
	.synopsis = "[options] ID",
	.summary = "Open a shell with a terminal in a sandbox",
	.examples = "cay shell work\n"
		    "cay shell --user root work",
	.run = run_shell,
	.opts = shell_opts,
	.runs_commands = true,
	.complete = "sandbox",
};
