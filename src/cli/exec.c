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
static void find_at_once(const struct cli_store *s, const char *ref, int *ret_fd)
{
	struct err ignored = { 0 };

	if (state_id_ok(ref))
		(void)client_connect(&s->state, ref, ret_fd, &ignored);
}

static int find(struct cli_store *s, const char *ref, int *ret_fd, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };

	find_at_once(s, ref, ret_fd);
	if (*ret_fd >= 0)
		return 0;
	if (catalog_open(&s->state, &s->catalog, e) < 0 ||
	    catalog_find(s->catalog, ref, &row, e) < 0)
		return -1;
	return client_connect(&s->state, row.id, ret_fd, e);
}

static struct sandbox_plan plan;
static int warden_fd = FD_NONE; /* of the sandbox that a transaction is to begin in */

static int with_first(struct cmd_ctx *ctx, struct cli_store *s, const char *id,
		      struct session_first *first, struct err *e)
{
	if (warden_fd < 0 && client_connect(&s->state, id, &warden_fd, e) < 0)
		return -1;
	return command_run_at(ctx, 1, &(struct session){ .warden_fd = warden_fd, .first = first },
			      &o, &plan, e);
}

/* While the catalog is opened the warden makes ready. */
static int in_tx(struct cmd_ctx *ctx, struct cli_store *s, struct err *e)
{
	find_at_once(s, ctx->args[0], &warden_fd);
	if (warden_fd >= 0)
		client_say_soon(warden_fd);
	return tx_around(s, ctx->args[0], with_first, ctx, e);
}

static int in_sandbox(struct cmd_ctx *ctx, struct cli_store *s, struct err *e)
{
	int r = find(s, ctx->args[0], &warden_fd, e);

	/* Commands can be long. */
	cli_store_done(s);
	return r < 0 ? -1
		     : command_run_at(ctx, 1, &(struct session){ .warden_fd = warden_fd }, &o,
				      &plan, e);
}

static int run_one(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	int r = cli_store_open_state(&s, e);

	if (r == 0)
		r = sandbox_opts_resolve(&o, &s.state, &plan, e);
	if (r == 0)
		r = o.tx ? in_tx(ctx, &s, e) : in_sandbox(ctx, &s, e);
	fd_close(&warden_fd);
	sandbox_plan_done(&plan);
	return r;
}

static int run_exec(struct cmd_ctx *ctx, struct err *e)
{
	if (cmd_need_args(ctx, 1, -1, "a sandbox", e) < 0)
		return -1;
	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "there is no command to run");
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
