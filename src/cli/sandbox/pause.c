/* SPDX-License-Identifier: Apache-2.0 */
/* cay pause, cay resume and cay extend. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/options.h"
#include "cli/output.h"
#include "ops/json.h"

static int order_one(const struct cmd_ctx *ctx, struct cay *s, const char *ref,
		     enum link_order order, uint64_t ttl_ms, struct err *e)
{
	const struct order_spec spec = { ref, order, ttl_ms };
	struct order_result res;

	if (op_order(s, &spec, &res, e) < 0)
		return -1;
	if (ctx->json && !ctx->quiet)
		PRINT_JSON(json_order, &res);
	else if (!ctx->quiet)
		puts(res.id);
	return 0;
}

static int order_all(struct cmd_ctx *ctx, enum link_order order, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };

	if (cmd_need_args(ctx, 1, -1, "SANDBOX", e) < 0 || cli_open(&s, e) < 0)
		return -1;
	for (int i = 0; i < ctx->nargs; i++)
		if (order_one(ctx, &s, ctx->args[i], order, 0, e) < 0)
			return -1;
	return 0;
}

static int run_pause(struct cmd_ctx *ctx, struct err *e)
{
	return order_all(ctx, LINK_PAUSE, e);
}

static int run_resume(struct cmd_ctx *ctx, struct err *e)
{
	return order_all(ctx, LINK_RESUME, e);
}

static int run_extend(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	uint64_t ttl_ms = 0;

	if (cmd_need_args(ctx, 2, 2, "SANDBOX and TIME", e) < 0)
		return -1;
	if (strcmp(ctx->args[1], "never") != 0 && duration_parse(ctx->args[1], &ttl_ms) < 0)
		return err_set(e, ERR_INVALID, "'%s' is no time: such as 30s, 10m, 2h, or never",
			       ctx->args[1]);
	if (cli_open(&s, e) < 0)
		return -1;
	return order_one(ctx, &s, ctx->args[0], LINK_EXTEND, ttl_ms, e);
}

const struct cmd cmd_pause = {
	.name = "pause",
	.synopsis = "SANDBOX...",
	.summary = "Stop everything in sandboxes, to go on later",
	.details =
		"No process inside runs any more, and the clocks of time limits stop. Memory stays "
		"in use. The sandbox goes on with cay resume, and by itself when a command is run "
		"in it.",
	.examples = "cay pause work\ncay resume work",
	.run = run_pause,
	.data = true,
	.complete = "sandbox",
};

const struct cmd cmd_resume = {
	.name = "resume",
	.synopsis = "SANDBOX...",
	.summary = "Let paused sandboxes go on",
	.examples = "cay resume work",
	.run = run_resume,
	.data = true,
	.complete = "sandbox",
};

const struct cmd cmd_extend = {
	.name = "extend",
	.synopsis = "SANDBOX TIME|never",
	.summary = "Give a sandbox a new time to live, from now on",
	.details = "Replaces what --ttl said, or what is left of it; never takes the limit away.",
	.examples = "cay extend work 10m\ncay extend work never",
	.run = run_extend,
	.data = true,
	.complete = "sandbox",
};
