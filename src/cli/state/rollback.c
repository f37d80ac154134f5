/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool force;
static struct opt opts[] = {
	{ "force", 'f', OPT_FLAG, NULL, "End commands that run in it first", &force },
	{ 0 },
};

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct rollback_spec spec = { .force = force };
	struct rollback_result res;

	if (cmd_need_args(ctx, 1, 2, "a sandbox", e) < 0)
		return -1;
	spec.sandbox = ctx->args[0];
	spec.snapshot = ctx->nargs == 2 ? ctx->args[1] : NULL;
	if (cli_open_state(&c, e) < 0 || op_rollback(&c, &spec, &res, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_rollback, &res);
	else if (!ctx->quiet)
		puts(res.snapshot);
	return 0;
}

const struct cmd cmd_rollback = {
	.name = "rollback",
	.synopsis = "[--force] SANDBOX [SNAPSHOT]",
	.summary = "Take the files of a sandbox back to a snapshot of it",
	.details =
		"To the last one, or to the one that is named. What was changed since is dropped; "
		"later snapshots stay and can be gone forward to. Refused with a list while "
		"commands run, unless --force ends them.",
	.examples = "cay rollback work\ncay rollback work before-upgrade --force",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
