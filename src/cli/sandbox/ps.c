/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool no_header;
static bool wide;
static struct opt opts[] = {
	{ "no-header", 0, OPT_FLAG, NULL, "No line of titles", &no_header },
	{ "wide", 0, OPT_FLAG, NULL, "Shorten nothing to the width of the terminal", &wide },
	{ 0 },
};

static const struct out_col cols[] = {
	{ .title = "PID", .right = true },
	{ .title = "PPID", .right = true },
	{ .title = "CALL", .right = true },
	{ .title = "USER" },
	{ .title = "STATE" },
	{ .title = "CPU", .right = true },
	{ .title = "RSS", .right = true },
	{ .title = "COMMAND", .cut = true },
};

struct listing {
	const struct cmd_ctx *ctx;
	struct out_table *t;
	bool failed;
};

static int add_row(struct out_table *t, const struct link_process *p)
{
	char cpu[OUT_NUMBER], rss[OUT_NUMBER], call[16] = "", state[] = { p->state, '\0' };
	int r = 0;

	if (p->call)
		(void)snprintf(call, sizeof call, "%u", p->call);
	r |= out_cellf(t, OUT_PLAIN, "%d", p->pid);
	r |= out_cellf(t, OUT_PLAIN, "%d", p->ppid);
	r |= out_cell(t, OUT_PLAIN, call);
	r |= out_cellf(t, OUT_PLAIN, "%u", p->user);
	r |= out_cell(t, OUT_PLAIN, state);
	r |= out_cell(t, OUT_PLAIN, out_duration(p->cpu_us, cpu));
	r |= out_cell(t, OUT_PLAIN, out_size(p->rss_kb * 1024, rss));
	r |= out_cell(t, OUT_PLAIN, p->args);
	return r;
}

static int on_process(void *ctx, const struct link_process *p)
{
	struct listing *l = ctx;

	if (l->ctx->quiet)
		printf("%d\n", p->pid);
	else if (l->ctx->json)
		PRINT_JSON(json_process, p);
	else
		l->failed = add_row(l->t, p) < 0;
	return l->failed;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	struct listing l = { .ctx = ctx, .t = &t };

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_open_state(&s, e) < 0 ||
	    op_ps(&s, ctx->args[0], on_process, &l, e) < 0)
		return -1;
	if (l.failed)
		return err_sys(e, ENOMEM, "listing the processes");
	if (!ctx->quiet && !ctx->json)
		out_table_print(&t, stdout, wide ? 0 : out_width(), !no_header, ctx->color_out);
	return 0;
}

const struct cmd cmd_ps = {
	.name = "ps",
	.synopsis = "SANDBOX",
	.summary = "List the processes in a sandbox",
	.details = "PIDs are those seen inside. CALL is the call that a process belongs to.",
	.examples = "cay ps box",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
