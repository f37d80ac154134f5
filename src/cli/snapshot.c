/* SPDX-License-Identifier: Apache-2.0 */
/* cay snapshot, cay snapshot rm, cay snapshots. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/moment.h"
#include "cli/output.h"

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

static const char *const kinds[SNAPSHOT_KINDS] = { "snapshot", "transaction", "lost", "fork" };

static void put_row(struct out_json *j, const struct snapshot_row *row)
{
	out_json_c(j, "id", row->id);
	out_json_c(j, "name", row->name);
	out_json_c(j, "note", row->note);
	out_json_c(j, "kind", kinds[row->kind]);
	out_json_c(j, "sandbox", row->sandbox);
	out_json_c(j, "template", row->template_);
	out_json_c(j, "layer", row->top);
	out_json_time(j, "created", row->created_ns);
}

static void print_made(const struct cmd_ctx *ctx, const struct snapshot_row *row,
		       const struct client_switched *res)
{
	struct out_json j = { .f = stdout };

	if (!ctx->json) {
		puts(row->id);
		return;
	}
	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", row->id);
	out_json_c(&j, "name", row->name);
	out_json_c(&j, "sandbox", row->sandbox);
	out_json_c(&j, "layer", row->top);
	out_json_bool(&j, "changed", res->result != OP_UNCHANGED);
	out_json_ms(&j, "took_ms", res->duration_us);
	out_json_ms(&j, "freeze_ms", res->freeze_us);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int remove_one(struct cli_store *s, const char *ref, bool quiet, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row row = { 0 };

	if (catalog_find_snapshot(s->catalog, ref, &row, e) < 0)
		return -1;
	if (row.kind == SNAPSHOT_TX) {
		err_set(e, ERR_CONFLICT, "snapshot '%s' is the begin of a transaction", row.id);
		return err_hint(e, "end it with: cay tx commit %s, or cay tx abort %s", row.sandbox,
				row.sandbox);
	}
	if (catalog_del_snapshot(s->catalog, row.id, e) < 0)
		return -1;
	if (!quiet)
		puts(row.id);
	return 0;
}

static int remove_all(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	int r = 0;

	if (ctx->nargs < 2)
		return cmd_usage(ctx, e, "missing a snapshot to remove");
	if (cli_store_open(&s, e) < 0)
		return -1;
	for (int i = 1; i < ctx->nargs && r == 0; i++)
		r = remove_one(&s, ctx->args[i], ctx->quiet, e);
	/* Also of those that went before one that could not. */
	catalog_free_layers_soon(s.catalog, &s.state);
	return r;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(moment_done) struct moment m = MOMENT_INIT;
	struct snapshot_row row = { .note = (char *)o.note };
	struct client_switched res = { 0 };

	if (ctx->nargs && strcmp(ctx->args[0], "rm") == 0)
		return remove_all(ctx, e);
	if (cmd_need_args(ctx, 1, 1, "a sandbox", e) < 0)
		return -1;
	if (o.name && !state_name_ok(o.name))
		return err_set(
			e, ERR_INVALID,
			"--name '%.200s': letters, digits and '_.-', a letter or digit first",
			o.name);
	(void)snprintf(row.name, sizeof row.name, "%s", o.name ? o.name : "");
	if (cli_store_open(&s, e) < 0 || moment_open(&m, &s, ctx->args[0], e) < 0 ||
	    moment_snapshot(&m, &row, &res, e) < 0)
		return -1;
	if (o.sync && moment_sync(&m, e) < 0)
		return -1;
	print_made(ctx, &row, &res);
	return 0;
}

const struct cmd cmd_snapshot = {
	.name = "snapshot",
	.synopsis = "[options] SANDBOX | rm SNAPSHOT...",
	.summary = "Keep the files of a sandbox as they are now, and print the snapshot's id",
	.details =
		"Takes a few milliseconds however many files there are, while nothing runs inside. "
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
	r |= out_cell(t, OUT_PLAIN, kinds[row->kind]);
	r |= out_cell(t, OUT_PLAIN, out_age(row->created_ns, clock_real_ns(), age));
	r |= out_cell(t, OUT_PLAIN, row->note);
	return r;
}

static int list_one(void *arg, const struct snapshot_row *row)
{
	struct out_json j = { .f = stdout };
	struct listing *l = arg;

	l->shown++;
	if (l->ctx->json) {
		out_json_open(&j, NULL, '{');
		put_row(&j, row);
		out_json_close(&j, '}');
		out_json_line(&j);
	} else if (l->ctx->quiet) {
		puts(row->id);
	} else {
		l->r |= add_row(&l->t, row);
	}
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
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	struct listing l = { .ctx = ctx, .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	struct err unknown = { 0 };
	const char *of = NULL;
	int r;

	if (cmd_need_args(ctx, 0, 1, "a sandbox", e) < 0 || cli_store_open(&s, e) < 0)
		return -1;
	/* One that is gone may still have snapshots under its id. */
	if (ctx->nargs == 1)
		of = catalog_find(s.catalog, ctx->args[0], &box, &unknown) == 0 ? box.id
										: ctx->args[0];
	r = catalog_each_snapshot(s.catalog, of, list_one, &l, e);
	if (r == 0 && !l.shown && of && !box.id[0]) {
		*e = unknown;
		r = -1;
	}
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
