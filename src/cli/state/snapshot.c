/* SPDX-License-Identifier: Apache-2.0 */
/* cay snapshot, cay snapshot rm, cay snapshots. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static struct {
	const char *name, *note;
	bool sync;
} o;

static struct opt opts[] = {
	{ "name", 'n', OPT_TEXT, "NAME", "A name, unique among snapshots", &o.name },
	{ "note", 0, OPT_TEXT, "TEXT", "What it is, for people", &o.note },
	{ "sync", 0, OPT_FLAG, NULL, "Wait until all of it is on the disk", &o.sync },
	{ 0 },
};

static int remove_all(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	char id[ID_SIZE];

	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "missing a snapshot to remove");
	if (cli_open(&c, e) < 0)
		return -1;
	for (int i = 1; i < ctx->nargs; i++) {
		if (op_snapshot_remove(&c, ctx->args[i], id, e) < 0)
			return -1;
		if (!ctx->quiet)
			puts(id);
	}
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct snapshot_spec spec = { .name = o.name, .note = o.note, .sync = o.sync };
	struct snapshot_result made;

	if (ctx->nargs && strcmp(ctx->args[0], "rm") == 0)
		return remove_all(ctx, e);
	if (cmd_need_args(ctx, 1, 1, "a sandbox", e) < 0)
		return -1;
	spec.sandbox = ctx->args[0];
	if (cli_open_state(&c, e) < 0 || op_snapshot(&c, &spec, &made, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_snapshot_made, &made);
	else
		puts(made.id);
	return 0;
}

const struct cmd cmd_snapshot = {
	.name = "snapshot",
	.synopsis = "[options] SANDBOX | rm SNAPSHOT...",
	.summary = "Keep the files of a sandbox as they are now, and print the snapshot's id",
	.details =
		"Takes a few milliseconds however many files there are, while nothing runs inside. "
		"The first one of a sandbox with --dir copies that directory before, once: from then on "
		"changes on the host do not show in the sandbox, its snapshots and forks. Files that "
		"cannot be read, or change all the time while they are copied, are named. "
		"With commands running they stand still for the time of a copy, in a pool (cay "
		"setup) for some milliseconds. A snapshot stays when its sandbox ends; it can be "
		"gone back to (cay rollback), forked (cay fork), and started from (--template "
		"snap:NAME). It survives every crash of a process at once, and that of the machine "
		"when the kernel has written it, within half a minute; with --sync when the "
		"command returns.",
	.examples = "cay snapshot work --name before-upgrade\n"
		    "cay snapshot rm before-upgrade",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};

static const struct out_col cols[] = {
	{ .title = "ID" },   { .title = "NAME", .cut = true },	{ .title = "SANDBOX" },
	{ .title = "KIND" }, { .title = "AGE", .right = true }, { .title = "NOTE", .cut = true },
};

struct listing {
	const struct cmd_ctx *ctx;
	struct out_table t;
	int shown, r;
};

static int add_row(struct out_table *t, const struct snapshot_row *row)
{
	int r = out_cell(t, OUT_PLAIN, row->id);
	char age[OUT_NUMBER];

	r |= out_cell(t, OUT_PLAIN, row->name);
	r |= out_cell(t, OUT_PLAIN, row->sandbox);
	r |= out_cell(t, OUT_PLAIN, snapshot_kind_names[row->kind]);
	r |= out_cell(t, OUT_PLAIN, out_age(row->created_ns, clock_real_ns(), age));
	r |= out_cell(t, OUT_PLAIN, row->note);
	return r;
}

static int list_one(void *arg, const struct snapshot_row *row)
{
	struct listing *l = arg;

	l->shown++;
	if (l->ctx->json)
		PRINT_JSON(json_snapshot, row);
	else if (l->ctx->quiet)
		puts(row->id);
	else
		l->r |= add_row(&l->t, row);
	return 0;
}

static void say_none(const struct cmd_ctx *ctx)
{
	if (ctx->json || ctx->quiet || !isatty(STDERR_FILENO))
		return;
	if (ctx->nargs == 1)
		fprintf(stderr, "No snapshots of '%s'.\n", ctx->args[0]);
	else
		fprintf(stderr, "No snapshots. Take one with: cay snapshot SANDBOX\n");
}

static int list(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct listing l = { .ctx = ctx, .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	int r;

	if (cmd_need_args(ctx, 0, 1, "a sandbox", e) < 0 || cli_open_state(&c, e) < 0)
		return -1;
	r = op_snapshot_list(&c, ctx->nargs ? ctx->args[0] : NULL, list_one, &l, e);
	if (r == 0 && l.r < 0)
		r = err_sys(e, ENOMEM, "list the snapshots");
	if (r == 0 && l.t.n)
		out_table_print(&l.t, stdout, out_width(), true, ctx->color_out);
	if (r == 0 && !l.shown)
		say_none(ctx);
	out_table_done(&l.t);
	return r;
}

const struct cmd cmd_snapshots = {
	.name = "snapshots",
	.synopsis = "[SANDBOX]",
	.summary = "List snapshots, oldest first",
	.examples = "cay snapshots\ncay snapshots work --json",
	.run = list,
	.data = true,
	.complete = "sandbox",
};
