/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/moment.h"
#include "cli/output.h"

static bool force;
static struct opt opts[] = {
	{ "force", 'f', OPT_FLAG, NULL, "End commands that run in it first", &force },
	{ 0 },
};

static int find(struct cmd_ctx *ctx, struct moment *m, struct snapshot_row *ret, struct err *e)
{
	int r;

	if (ctx->nargs == 2)
		return catalog_find_snapshot(m->s->catalog, ctx->args[1], ret, e);
	r = catalog_last_snapshot(m->s->catalog, m->row.id, SNAPSHOT_USER, ret, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no snapshot", m->row.id);
	return err_hint(e, "take one with: cay snapshot %s", m->row.id);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(moment_done) struct moment m = MOMENT_INIT;
	auto_done(snapshot_row_done) struct snapshot_row to = { 0 };
	struct client_switched res = { 0 };
	struct out_json j = { .f = stdout };

	if (cmd_need_args(ctx, 1, 2, "a sandbox", e) < 0 || cli_store_open(&s, e) < 0 ||
	    moment_open(&m, &s, ctx->args[0], e) < 0 || find(ctx, &m, &to, e) < 0 ||
	    moment_rollback(&m, &to, force, &res, e) < 0)
		return -1;
	if (ctx->json) {
		out_json_open(&j, NULL, '{');
		out_json_c(&j, "id", m.row.id);
		out_json_c(&j, "snapshot", to.id);
		out_json_ms(&j, "took_ms", res.duration_us);
		out_json_close(&j, '}');
		out_json_line(&j);
	} else if (!ctx->quiet) {
		puts(to.id);
	}
	return 0;
}

const struct cmd cmd_rollback = {
	.name = "rollback",
	.synopsis = "[--force] SANDBOX [SNAPSHOT]",
	.summary = "Take the files of a sandbox back to a snapshot of it",
	.details =
		"To the last one, or to the one that is named. What was changed since is dropped; "
		"later snapshots stay and can be gone forward to. Refused with a list while "
		"commands run, unless --force ends them.",
	.examples = "cay rollback work\ncay rollback work before-upgrade --force",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
