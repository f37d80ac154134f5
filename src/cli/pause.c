/* SPDX-License-Identifier: Apache-2.0 */
/* cay pause, cay resume and cay extend. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/sandboxes.h"

static void print(const struct cmd_ctx *ctx, const char *id, const struct client_state *st)
{
	struct out_json j = { .f = stdout };

	if (ctx->quiet)
		return;
	if (!ctx->json) {
		puts(id);
		return;
	}
	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", id);
	out_json_c(&j, "state", st->state);
	if (st->ttl_left_ms != UINT64_MAX)
		out_json_num(&j, "ttl_left_ms", (int64_t)st->ttl_left_ms);
	else
		out_json_raw(&j, "ttl_left_ms", NULL);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int order_one(const struct cmd_ctx *ctx, struct cli_store *s, const char *ref,
		     enum client_order order, uint64_t ttl_ms, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct client_state st;

	if (catalog_find(s->catalog, ref, &row, e) < 0 ||
	    client_order(&s->state, row.id, order, ttl_ms, &st, e) < 0)
		return -1;
	print(ctx, row.id, &st);
	return 0;
}

static int order_all(struct cmd_ctx *ctx, enum client_order order, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };

	if (cmd_need_args(ctx, 1, -1, "SANDBOX", e) < 0 || cli_store_open(&s, e) < 0)
		return -1;
	for (int i = 0; i < ctx->nargs; i++)
		if (order_one(ctx, &s, ctx->args[i], order, 0, e) < 0)
			return -1;
	return 0;
}

static int run_pause(struct cmd_ctx *ctx, struct err *e)
{
	return order_all(ctx, CLIENT_PAUSE, e);
}

static int run_resume(struct cmd_ctx *ctx, struct err *e)
{
	return order_all(ctx, CLIENT_RESUME, e);
}

static int run_extend(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	uint64_t ttl_ms = 0;

	if (cmd_need_args(ctx, 2, 2, "SANDBOX and TIME", e) < 0)
		return -1;
	if (strcmp(ctx->args[1], "never") != 0 && duration_parse(ctx->args[1], &ttl_ms) < 0)
		return err_set(e, ERR_INVALID, "'%s' is no time: such as 30s, 10m, 2h, or never",
			       ctx->args[1]);
	if (cli_store_open(&s, e) < 0)
		return -1;
	return order_one(ctx, &s, ctx->args[0], CLIENT_EXTEND, ttl_ms, e);
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
