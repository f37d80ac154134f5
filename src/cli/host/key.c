/* SPDX-License-Identifier: Apache-2.0 */
/* cay key create|ls|revoke: manages the API keys of the server. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/key.h"

static int run_create(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct key_row row;
	char text[KEY_TEXT];

	if (cmd_need_args(ctx, 1, 1, "a name for the key", e) < 0 || cli_open(&c, e) < 0 ||
	    op_key_create(&c, ctx->args[0], text, &row, e) < 0)
		return -1;
	if (ctx->json) {
		PRINT_JSON(json_put_key, &row, text);
		return 0;
	}
	puts(text);
	if (!ctx->quiet)
		fputs("Keep it: it is not shown again.\n", stderr);
	return 0;
}

struct listing {
	const struct cmd_ctx *ctx;
	struct out_table t;
	int r;
};

static int show_key(void *ctx, const struct key_row *row)
{
	struct listing *l = ctx;
	char created[CLOCK_TEXT_SIZE];

	clock_text(row->created_ns, created);
	if (l->ctx->quiet) {
		puts(row->name);
	} else if (l->ctx->json) {
		PRINT_JSON(json_put_key, row, NULL);
	} else {
		l->r |= out_cell(&l->t, OUT_PLAIN, row->name);
		l->r |= out_cellf(&l->t, OUT_PLAIN, "%s…", row->shown);
		l->r |= out_cell(&l->t, OUT_PLAIN, created);
		l->r |= out_cell(&l->t, OUT_PLAIN, row->id);
	}
	return 0;
}

static int run_ls(struct cmd_ctx *ctx, struct err *e)
{
	static const struct out_col cols[] = {
		{ .title = "NAME" }, { .title = "KEY" }, { .title = "CREATED" }, { .title = "ID" }
	};
	auto_done(cli_done) struct cay c = { 0 };
	struct listing l = { .ctx = ctx, .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	int r;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_open(&c, e) < 0)
		return -1;
	r = op_key_list(&c, show_key, &l, e);
	if (r == 0 && l.r < 0)
		r = err_sys(e, ENOMEM, "list the keys");
	if (r == 0 && l.t.n)
		out_table_print(&l.t, stdout, out_width(), true, ctx->color_out);
	out_table_done(&l.t);
	return r;
}

static int run_revoke(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct key_row row;

	if (cmd_need_args(ctx, 1, 1, "the name or id of a key", e) < 0 || cli_open(&c, e) < 0 ||
	    op_key_revoke(&c, ctx->args[0], &row, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_put_key, &row, NULL);
	else if (!ctx->quiet)
		puts(row.name);
	return 0;
}

const struct cmd cmd_key_create = {
	.name = "key create",
	.synopsis = "NAME",
	.summary = "Make a key for programs that use cay serve over the network",
	.details =
		"Prints the key once; the catalog keeps only its hash. A key sees and changes the "
		"sandboxes that it made, and no others.",
	.examples = "cay key create ci\nexport E2B_API_KEY=$(cay key create -q laptop)",
	.run = run_create,
	.data = true,
};

const struct cmd cmd_key_ls = {
	.name = "key ls",
	.synopsis = "",
	.summary = "List keys",
	.examples = "cay key ls",
	.run = run_ls,
	.data = true,
};

const struct cmd cmd_key_revoke = {
	.name = "key revoke",
	.synopsis = "NAME",
	.summary = "Make a key invalid",
	.details = "Sandboxes that the key made stay, and belong to nobody but the host's user.",
	.examples = "cay key revoke ci",
	.run = run_revoke,
	.data = true,
};
