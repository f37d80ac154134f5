/* SPDX-License-Identifier: Apache-2.0 */
/* cay pool ls: shows how many sandboxes each pool wants and has. */
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static const struct out_col cols[] = {
	{ .title = "TEMPLATE", .cut = true }, { .title = "WANTED", .right = true },
	{ .title = "READY", .right = true },  { .title = "CLAIMED", .right = true },
	{ .title = "OPTIONS", .cut = true },  { .title = "PROBLEM", .cut = true },
};

struct listing {
	const struct cmd_ctx *ctx;
	struct out_table t;
	long keeper;
	int r;
};

static int add_row(struct out_table *t, const struct pool_item *it)
{
	int r = out_cell(t, OUT_PLAIN, it->row->template_);

	r |= out_cellf(t, OUT_PLAIN, "%u", it->row->wanted);
	r |= out_cellf(t, it->ready < it->row->wanted ? OUT_YELLOW : OUT_GREEN, "%zu", it->ready);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)it->claimed);
	r |= out_cell(t, OUT_PLAIN, it->row->options);
	r |= out_cell(t, OUT_RED, it->problem);
	return r;
}

static int show_row(void *ctx, const struct pool_item *it)
{
	struct listing *l = ctx;

	if (l->ctx->quiet)
		puts(it->row->template_);
	else if (l->ctx->json)
		PRINT_JSON(json_pool, it, l->keeper);
	else
		l->r |= add_row(&l->t, it);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct listing l = { .ctx = ctx, .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	int r;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_open_state(&c, e) < 0)
		return -1;
	r = op_pool_list(&c, show_row, &l, &l.keeper, e);
	if (r == 0 && l.r < 0)
		r = err_sys(e, ENOMEM, "list the pools");
	if (r == 0 && l.t.n)
		out_table_print(&l.t, stdout, out_width(), true, ctx->color_out);
	if (r == 0 && l.t.n && l.keeper == 0)
		fprintf(stderr, "The keeper was not running; it is started again.\n");
	out_table_done(&l.t);
	return r;
}

const struct cmd cmd_pool_ls = {
	.name = "pool ls",
	.synopsis = "",
	.summary = "List pools of ready sandboxes",
	.details = "READY can be claimed now, CLAIMED have been. With --json also the pid of the "
		   "keeper, which makes them: null where it was not running; then it is started "
		   "again.",
	.examples = "cay pool ls\ncay pool ls --json | jq .ready",
	.run = run,
	.data = true,
};
