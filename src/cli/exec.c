/* SPDX-License-Identifier: Apache-2.0 */
/* cay exec and cay shell: a command in a sandbox that is there. */
#include <stdio.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command_line.h"
#include "cli/tx.h"

static struct sandbox_opts o;
static struct opt exec_opts[] = {
	SANDBOX_OPTS_CALL(o),
	SANDBOX_OPTS_RUN(o),
	SANDBOX_OPTS_TX(o),
	LIMIT_OPTS_RUN(o.limits),
	{ 0 },
};

/* Whoever gives a whole id, as programs do, needs no catalog while the sandbox lives. */
static int find(struct cmd_ctx *ctx, struct cli_store *s, int *ret_fd, struct sandbox_plan *plan,
		struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	const char *ref = ctx->args[0];
	struct err ignored = { 0 };

	if (sandbox_opts_resolve(&o, &s->state, plan, e) < 0)
		return -1;
	if (state_id_ok(ref) && client_connect(&s->state, ref, ret_fd, &ignored) == 0)
		return 0;
	if (!s->catalog && catalog_open(&s->state, &s->catalog, e) < 0)
		return -1;
	if (catalog_find(s->catalog, ref, &row, e) < 0)
		return -1;
	return client_connect(&s->state, row.id, ret_fd, e);
}

static int in_tx(struct cmd_ctx *ctx, struct cli_store *s, struct err *e)
{
	auto_done(sandbox_plan_done) struct sandbox_plan plan = { 0 };
	auto_close int fd = FD_NONE;

	return find(ctx, s, &fd, &plan, e) < 0 ? -1 : command_run_at(ctx, 1, fd, &o, &plan, e);
}

static int in_sandbox(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(sandbox_plan_done) struct sandbox_plan plan = { 0 };
	auto_close int fd = FD_NONE;
	struct cli_store s = { 0 };
	int r = cli_store_open_state(&s, e);

	if (r == 0)
		r = find(ctx, &s, &fd, &plan, e);
	/* Commands can be long. */
	cli_store_done(&s);
	return r < 0 ? -1 : command_run_at(ctx, 1, fd, &o, &plan, e);
}

static int run_exec(struct cmd_ctx *ctx, struct err *e)
{
	if (cmd_need_args(ctx, 1, -1, "a sandbox", e) < 0)
		return -1;
	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "there is no command to run");
	return o.tx ? tx_around(ctx->args[0], in_tx, ctx, e) : in_sandbox(ctx, e);
}

static int run_shell(struct cmd_ctx *ctx, struct err *e)
{
	if (cmd_need_args(ctx, 1, 1, "a sandbox", e) < 0)
		return -1;
	o.tty = true;
	return in_sandbox(ctx, e);
}

const struct cmd cmd_exec = {
	.name = "exec",
	.synopsis = "[options] ID [--] CMD [ARG...]",
	.summary = "Run a command in a sandbox",
	.details =
		"stdin, stdout, stderr, signals and the exit code are passed on as with cay run. "
		"Processes that the command leaves behind go on in the sandbox, and still belong "
		"to this call; with --tx they are ended if the command fails.",
	.examples = "cay exec k3x9 -- npm test\n"
		    "cay exec work --call-id step-17 --timeout 5m -- make\n"
		    "tar c src | cay exec work -- tar x",
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
