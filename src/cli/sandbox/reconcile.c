/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/context.h"
#include "ops/destroy.h"

enum { REMOVE_MS = 5000 };

static bool remove_it;
static struct opt opts[] = {
	{ "remove", 0, OPT_FLAG, NULL, "Keep nothing of it", &remove_it },
	{ 0 },
};

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };

	if (cmd_need_args(ctx, 1, 1, "ID", e) < 0)
		return -1;
	if (!state_id_ok(ctx->args[0]))
		return err_set(e, ERR_INVALID, "'%s' is not an id", ctx->args[0]);
	if (cli_open_state(&s, e) < 0)
		return -1;
	return remove_it ? op_remove(&s, ctx->args[0], REMOVE_MS, e)
			 : op_reconcile(&s, ctx->args[0], e);
}

const struct cmd cmd_reconcile = {
	.name = "reconcile",
	.synopsis = "[--remove] ID",
	.summary =
		"Put in order what a sandbox that ended has left (wardens run this as their last act)",
	.run = run,
	.opts = opts,
	.hidden = true,
};
