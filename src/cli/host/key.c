/* SPDX-License-Identifier: Apache-2.0 */
/* cay key create|ls|set|revoke: manages the API keys of the server. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/host/key_options.h"
#include "cli/options.h"
#include "cli/output.h"

static struct key_opts wanted;
static const char *want_expires, *want_shares;
static struct opt create_opts[] = {
	KEY_LIMIT_ROWS(wanted),
	{ "scope", 0, OPT_TEXT, "LIST",
	  "What it may do: all (default), or read, create, use, network, snapshot", &wanted.scope },
	{ "expires", 0, OPT_TEXT, "TIME", "End it after this time, such as 12h or 30d",
	  &want_expires },
	{ "shares", 0, OPT_TEXT, "NAME", "Let it use the sandboxes of this key, and its quotas",
	  &want_shares },
	{ 0 },
};
static struct opt set_opts[] = {
	KEY_LIMIT_ROWS(wanted),
	{ "scope", 0, OPT_TEXT, "LIST", "What it may do", &wanted.scope },
	{ "expires", 0, OPT_TEXT, "TIME", "End it after this time from now; none: never",
	  &want_expires },
	{ 0 },
};

static int read_expires(uint64_t *ret_ns, struct err *e)
{
	uint64_t ms;

	*ret_ns = 0;
	if (!want_expires || strcmp(want_expires, "none") == 0)
		return 0;
	if (duration_parse(want_expires, &ms) < 0 || ms > INT64_MAX / (2 * NS_PER_MS))
		return err_set(e, ERR_INVALID, "--expires '%.64s': write 12h, 30d or none",
			       want_expires);
	*ret_ns = clock_real_ns() + ms * NS_PER_MS;
	return 0;
}

static int run_create(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct key_spec spec = { .shares = want_shares };
	struct key_row row;
	char text[KEY_TEXT];

	if (cmd_need_args(ctx, 1, 1, "a name for the key", e) < 0 ||
	    key_opts_read(&wanted, &spec.limits, e) < 0 || read_expires(&spec.expires_ns, e) < 0)
		return -1;
	spec.name = ctx->args[0];
	if (cli_open(&c, e) < 0 || op_key_create(&c, &spec, text, &row, e) < 0)
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

static int run_set(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct key_limits over;
	struct key_row row;
	uint64_t expires_ns;

	if (cmd_need_args(ctx, 1, 1, "the name or id of a key", e) < 0 ||
	    key_opts_read(&wanted, &over, e) < 0 || read_expires(&expires_ns, e) < 0 ||
	    cli_open(&c, e) < 0 ||
	    op_key_set(&c, ctx->args[0], &over, want_expires ? &expires_ns : NULL, &row, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_put_key, &row, NULL);
	return 0;
}

struct listing {
	const struct cmd_ctx *ctx;
	struct cay *cay;
	struct out_table t;
	struct err e;
	int r;
};

/* What is used of what is allowed: "3/20", "512M/none". */
static void put_use(struct listing *l, uint64_t use, uint64_t most, bool size)
{
	char used[OUT_NUMBER], allowed[OUT_NUMBER] = "none";

	if (size)
		(void)out_size(use, used);
	else
		(void)snprintf(used, sizeof used, "%" PRIu64, use);
	if (most != KEY_LIMIT_NONE && size)
		(void)out_size(most, allowed);
	else if (most != KEY_LIMIT_NONE)
		(void)snprintf(allowed, sizeof allowed, "%" PRIu64, most);
	l->r |= out_cellf(&l->t, OUT_PLAIN, "%s/%s", used, allowed);
}

static void put_cpus(struct listing *l, uint64_t use, uint64_t most)
{
	if (most == KEY_LIMIT_NONE)
		l->r |= out_cellf(&l->t, OUT_PLAIN, "%g/none", (double)use / 1000);
	else
		l->r |= out_cellf(&l->t, OUT_PLAIN, "%g/%g", (double)use / 1000,
				  (double)most / 1000);
}

static void put_number(struct listing *l, uint64_t n, const char *unit)
{
	if (n == KEY_LIMIT_NONE)
		l->r |= out_cell(&l->t, OUT_PLAIN, "none");
	else
		l->r |= out_cellf(&l->t, OUT_PLAIN, "%" PRIu64 "%s", n, unit);
}

static void put_row(struct listing *l, const struct key_row *row, const struct key_limits *k,
		    const struct key_use *use)
{
	auto_done(buf_done) struct buf scope = BUF_INIT(256);
	char expires[CLOCK_TEXT_SIZE] = "never";

	if (row->expires_ns)
		clock_text(row->expires_ns, expires);
	l->r |= key_scope_put(k->scope, &scope);
	l->r |= out_cell(&l->t, OUT_PLAIN, row->name);
	l->r |= out_cellf(&l->t, OUT_PLAIN, "%s…", row->shown);
	l->r |= out_cell(&l->t, OUT_PLAIN, row->damaged ? "damaged" : scope.data);
	put_use(l, use->sandboxes, k->of[KEY_SANDBOXES], false);
	put_use(l, use->memory, k->of[KEY_MEMORY], true);
	put_cpus(l, use->cpu_milli, k->of[KEY_CPU_MILLI]);
	put_number(l, k->of[KEY_RATE], "/min");
	put_number(l, k->of[KEY_CALLS], "");
	l->r |= out_cell(&l->t, OUT_PLAIN, expires);
	l->r |= out_cell(&l->t, OUT_PLAIN, row->id);
}

static void json_put_listed(struct json *j, const struct key_row *row, const struct key_limits *k,
			    const struct key_use *use)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(row->created_ns, text);
	json_obj(j);
	json_put_c(j, "id", row->id);
	json_put_c(j, "name", row->name);
	json_put_c(j, "begins", row->shown);
	json_put_c(j, "created", text);
	if (row->expires_ns)
		clock_text(row->expires_ns, text);
	json_put_c(j, "expires", row->expires_ns ? text : NULL);
	json_put_limits(j, k);
	json_put_obj(j, "use");
	json_put_u64(j, "sandboxes", use->sandboxes);
	json_put_u64(j, "memory", use->memory);
	json_put_u64(j, "cpus", use->cpu_milli);
	json_end(j);
	json_end(j);
}

static int show_key(void *ctx, const struct key_row *row)
{
	struct listing *l = ctx;
	struct key_limits k;
	struct key_use use;

	if (l->ctx->quiet) {
		puts(row->name);
		return 0;
	}
	if (op_key_use(l->cay, row, &k, &use, &l->e) < 0)
		return 1;
	if (l->ctx->json)
		PRINT_JSON(json_put_listed, row, &k, &use);
	else
		put_row(l, row, &k, &use);
	return 0;
}

static int run_ls(struct cmd_ctx *ctx, struct err *e)
{
	static const struct out_col cols[] = { { .title = "NAME" },    { .title = "KEY" },
					       { .title = "SCOPE" },   { .title = "SANDBOXES" },
					       { .title = "MEMORY" },  { .title = "CPUS" },
					       { .title = "RATE" },    { .title = "CALLS" },
					       { .title = "EXPIRES" }, { .title = "ID" } };
	auto_done(cli_done) struct cay c = { 0 };
	struct listing l = { .ctx = ctx,
			     .cay = &c,
			     .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	int r;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_open(&c, e) < 0)
		return -1;
	r = op_key_list(&c, show_key, &l, e);
	if (r == 0 && l.e.kind != ERR_NONE) {
		*e = l.e;
		r = -1;
	}
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
	.synopsis = "[options] NAME",
	.summary = "Make a key for programs that use cay serve over the network",
	.details =
		"Prints the key once; the catalog keeps only its hash. A key sees and changes the "
		"sandboxes that it made, and no others. Each limit is a number or none; without "
		"the option that of cay serve holds.",
	.examples = "cay key create ci --max-sandboxes 20 --rate 60/min\n"
		    "cay key create viewer --shares ci --scope read\n"
		    "export E2B_API_KEY=$(cay key create -q laptop)",
	.run = run_create,
	.opts = create_opts,
	.data = true,
};

const struct cmd cmd_key_ls = {
	.name = "key ls",
	.synopsis = "",
	.summary = "List keys, with what they use and may use",
	.examples = "cay key ls",
	.run = run_ls,
	.data = true,
};

const struct cmd cmd_key_set = {
	.name = "key set",
	.synopsis = "[options] NAME",
	.summary = "Change what a key may do and use",
	.details = "Holds at once, also for a server that runs. Sandboxes that exist stay as they "
		   "are.",
	.examples = "cay key set ci --max-sandboxes 50 --memory 64G",
	.run = run_set,
	.opts = set_opts,
	.data = true,
};

const struct cmd cmd_key_revoke = {
	.name = "key revoke",
	.synopsis = "NAME",
	.summary = "Make a key invalid",
	.details = "Sandboxes that the key made stay, and belong to nobody but the host's user. "
		   "Keys that share it end, too.",
	.examples = "cay key revoke ci",
	.run = run_revoke,
	.data = true,
};
