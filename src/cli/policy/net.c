/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay net: shows the network use of a sandbox by host. Past connections come from the trace,
 * current ones from the gateway.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool by_call;
static struct opt opts[] = {
	{ "by-call", 0, OPT_FLAG, NULL, "A line for each call that used a host", &by_call },
	{ 0 },
};

static int add_row(struct out_table *t, const struct net_row *w)
{
	char up[OUT_NUMBER], down[OUT_NUMBER];
	int r = out_cell(t, OUT_PLAIN, w->host);

	r |= w->port ? out_cellf(t, OUT_PLAIN, "%u", w->port) : out_cell(t, OUT_PLAIN, "");
	if (by_call)
		r |= out_cellf(t, OUT_PLAIN, "%u", w->call);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->connections);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->open);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->denied);
	r |= out_cell(t, OUT_PLAIN, out_size(w->up, up));
	r |= out_cell(t, OUT_PLAIN, out_size(w->down, down));
	return r;
}

static int print_table(struct cmd_ctx *ctx, const struct net_result *r, struct err *e)
{
	static const struct out_col plain[] = {
		{ .title = "HOST" },
		{ .title = "PORT", .right = true },
		{ .title = "CONNECTIONS", .right = true },
		{ .title = "OPEN", .right = true },
		{ .title = "DENIED", .right = true },
		{ .title = "UP", .right = true },
		{ .title = "DOWN", .right = true },
	}, called[] = {
		{ .title = "HOST" },
		{ .title = "PORT", .right = true },
		{ .title = "CALL", .right = true },
		{ .title = "CONNECTIONS", .right = true },
		{ .title = "OPEN", .right = true },
		{ .title = "DENIED", .right = true },
		{ .title = "UP", .right = true },
		{ .title = "DOWN", .right = true },
	};
	auto_done(out_table_done) struct out_table t = {
		.cols = by_call ? called : plain,
		.ncols = by_call ? ARRAY_LEN(called) : ARRAY_LEN(plain),
	};

	for (int i = 0; i < r->n; i++)
		if (add_row(&t, &r->rows[i]) < 0)
			return err_sys(e, ENOMEM, "listing the hosts");
	out_table_print(&t, stdout, out_width(), true, ctx->color_out);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(net_result_done) struct net_result r = { 0 };
	int rc = 0;

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_open_state(&s, e) < 0 ||
	    op_net(&s, ctx->args[0], by_call, &r, e) < 0)
		return -1;
	if (!ctx->json)
		rc = print_table(ctx, &r, e);
	for (int i = 0; ctx->json && i < r.n; i++)
		PRINT_JSON(json_net_row, &r.rows[i], by_call);
	if (r.lost)
		fprintf(stderr, "cay: %d more hosts are not shown\n", r.lost);
	return rc;
}

const struct cmd cmd_net = {
	.name = "net",
	.synopsis = "SANDBOX",
	.summary = "Show what a sandbox talks to, by host",
	.details = "Connections, bytes and refusals of each host and port: those that have ended "
		   "from the trace, those that are open from the gateway.",
	.examples = "cay net work\ncay net work --by-call --json",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
