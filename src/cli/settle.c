/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/sandboxes.h"
#include "store/snapshots.h"

enum { SETTLE_MS = 5000 };

static bool remove_it;
static struct opt opts[] = {
	{ "remove", 0, OPT_FLAG, NULL, "Keep nothing of it", &remove_it },
	{ 0 },
};

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };

	if (cmd_need_args(ctx, 1, 1, "ID", e) < 0)
		return -1;
	if (!state_id_ok(ctx->args[0]))
		return err_set(e, ERR_INVALID, "'%s' is not an id", ctx->args[0]);
	if (cli_store_open(&s, e) < 0)
		return -1;
	if (remove_it ? sandbox_settle(&s, ctx->args[0], SETTLE_MS, e) < 0
		      : catalog_reconcile_one(s.catalog, &s.state, ctx->args[0], e) < 0)
		return -1;
	catalog_free_layers_soon(s.catalog, &s.state);
	return 0;
}

const struct cmd cmd_settle = {
	.name = "settle",
	.synopsis = "[--remove] ID",
	.summary =
		"Put in order what a sandbox that ended has left (wardens run this as their last act)",
	.run = run,
	.opts = opts,
	.hidden = true,
};
