/* SPDX-License-Identifier: Apache-2.0 */
/* cay calls: lists running calls and the most recent ended calls. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool no_header, wide;
static struct opt opts[] = {
	{ "no-header", 0, OPT_FLAG, NULL, "No line of titles", &no_header },
	{ "wide", 0, OPT_FLAG, NULL, "Shorten nothing to the width of the terminal", &wide },
	{ 0 },
};

static const struct out_col cols[] = {
	{ .title = "CALL", .right = true },
	{ .title = "CALL-ID" },
	{ .title = "STATE" },
	{ .title = "AGE", .right = true },
	{ .title = "TIME", .right = true },
	{ .title = "OUTPUT", .right = true },
	{ .title = "COMMAND", .cut = true },
};

struct listing {
	const struct cmd_ctx *ctx;
	struct out_table *t;
	uint64_t now_ns;
	bool failed;
};

/* A file operation has no command words. */
static const char *words_of(const struct link_call_row *r)
{
	return r->args[0] ? r->args : r->op == CALL_EXEC ? "(shell)" : "(copy)";
}

static int add_row(const struct listing *l, const struct link_call_row *r)
{
	uint64_t since = r->start_ms * NS_PER_MS;
	char age[OUT_NUMBER], took[OUT_NUMBER] = "", size[OUT_NUMBER];
	struct out_table *t = l->t;
	int k = 0;

	if (!r->running && !r->failed)
		(void)out_duration(r->result.duration_us, took);
	k |= out_cellf(t, OUT_PLAIN, "%u", r->call);
	k |= out_cell(t, OUT_PLAIN, r->call_id);
	if (strcmp(call_row_state(r), "exit") == 0)
		k |= out_cellf(t, OUT_PLAIN, "exit %d", r->result.code);
	else
		k |= out_cellf(t, r->running ? OUT_GREEN : OUT_PLAIN, "%s%s", call_row_state(r),
			       r->running && r->detached ? " (detached)" : "");
	k |= out_cell(t, OUT_PLAIN, out_age(since, l->now_ns, age));
	k |= out_cell(t, OUT_PLAIN, took);
	k |= out_cell(t, OUT_PLAIN, out_size(r->out_bytes + r->err_bytes, size));
	k |= out_cell(t, OUT_PLAIN, words_of(r));
	return k;
}

static int on_call(void *ctx, const struct link_call_row *r)
{
	struct listing *l = ctx;

	if (l->ctx->quiet)
		printf("%u\n", r->call);
	else if (l->ctx->json)
		PRINT_JSON(json_call, r);
	else
		l->failed = add_row(l, r) < 0;
	return l->failed;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	struct listing l = { .ctx = ctx, .t = &t, .now_ns = clock_real_ns() };

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_open_state(&c, e) < 0 ||
	    op_calls(&c, ctx->args[0], on_call, &l, e) < 0)
		return -1;
	if (l.failed)
		return err_sys(e, ENOMEM, "listing the calls");
	if (!ctx->quiet && !ctx->json)
		out_table_print(&t, stdout, wide ? 0 : out_width(), !no_header, ctx->color_out);
	return 0;
}

const struct cmd cmd_calls = {
	.name = "calls",
	.synopsis = "SANDBOX",
	.summary = "List the calls of a sandbox, running and ended",
	.details = "A call is a command that cay started, or a copy of files. The last 128 calls, "
		   "and the last 128 detached ones, are listed. TIME is how long an ended call "
		   "took.",
	.examples = "cay calls work\n"
		    "cay calls work --json",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
