/* SPDX-License-Identifier: Apache-2.0 */
/* cay apply: applies a sandbox's changes below its --dir to the host directory. */
#include <stdio.h>

#include "cli/context.h"
#include "cli/output.h"
#include "cli/state/apply_print.h"

static struct {
	const char *to;
	bool dry_run, merge, git_config, resume, undo;
} o;

static struct opt opts[] = {
	{ "to", 0, OPT_TEXT, "DIR", "Write into this directory instead of the one given with --dir",
	  &o.to },
	{ "dry-run", 0, OPT_FLAG, NULL, "Show what would be done", &o.dry_run },
	{ "merge", 0, OPT_FLAG, NULL,
	  "Merge files that changed on the host too; conflicts are marked in them, exit code 1",
	  &o.merge },
	{ "git-config", 0, OPT_FLAG, NULL,
	  "Also configuration and hooks of git, and .hg, .jj, .svn: they can run commands on the host",
	  &o.git_config },
	{ "resume", 0, OPT_FLAG, NULL, "Finish a run that was cut off, and do nothing else",
	  &o.resume },
	{ "undo", 0, OPT_FLAG, NULL, "Undo a run that was cut off", &o.undo },
	{ 0 },
};

static void say_finished(void *ctx, const char *dir, size_t changes)
{
	(void)ctx;
	fputs("cay: a run that was cut off in '", stderr);
	out_safe_to(stderr, str_of(dir));
	fprintf(stderr, "' is %s: %zu changes\n", o.undo ? "undone" : "finished", changes);
}

static int plan_and_do(struct cmd_ctx *ctx, struct cay *c, struct err *e)
{
	auto_done(apply_planned_done) struct apply_planned p = { 0 };
	const struct apply_spec spec = {
		.sandbox = ctx->args[0],
		.to = o.to,
		.paths = (const char *const *)ctx->args + 1,
		.npaths = ctx->nargs - 1,
		.merge = o.merge,
		.git_config = o.git_config,
	};
	size_t conflicts = 0;

	if (op_apply_plan(c, &spec, &p, e) < 0)
		return -1;
	if (!p.refused && !o.dry_run && op_apply_run(&p, &conflicts, e) < 0)
		return -1;
	apply_print(&p, ctx, p.refused && !o.dry_run, stdout);
	if (p.left_config && !ctx->json && !ctx->quiet)
		fputs("cay: what can run commands was left out; read it, then: cay apply --git-config\n",
		      stderr);
	if (apply_check(&p, e) < 0)
		return -1;
	if (!p.steps && !ctx->json && !ctx->quiet)
		fputs("nothing to apply\n", stderr);
	return conflicts ? 1 : 0;
}

/* Handles --resume and --undo, and runs before anything else is applied. */
static int finish_first(const struct cmd_ctx *ctx, struct cay *c, int *ret_found, struct err *e)
{
	const struct apply_finish_spec spec = {
		.sandbox = ctx->nargs ? ctx->args[0] : NULL,
		.to = o.to,
		.undo = o.undo,
		.fn = say_finished,
	};

	return op_apply_finish(c, &spec, ret_found, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	bool only_finish = o.resume || o.undo;
	int found = 0;

	if (o.resume && o.undo)
		return cmd_usage(ctx, e, "--resume or --undo, not both");
	/* The interrupted run may belong to a sandbox that no longer exists. */
	if (!(only_finish && o.to && ctx->nargs == 0) &&
	    cmd_need_args(ctx, 1, only_finish ? 1 : -1, "SANDBOX", e) < 0)
		return -1;
	if (cli_open_state(&c, e) < 0 ||
	    ((only_finish || !o.dry_run) && finish_first(ctx, &c, &found, e) < 0))
		return -1;
	if (only_finish && !found)
		return err_set(e, ERR_NOT_FOUND, "nothing was cut off%s%s%s", o.to ? " in '" : "",
			       o.to ? o.to : "", o.to ? "'" : "");
	return only_finish ? 0 : plan_and_do(ctx, &c, e);
}

const struct cmd cmd_apply = {
	.name = "apply",
	.synopsis = "[options] SANDBOX [PATH...]",
	.summary = "Take a sandbox's changes over into the directory given with --dir",
	.details =
		"All or nothing: where a file of the host has changed since the sandbox was made, "
		"where something is a device, socket or pipe, or cannot be read, the list of these "
		"is shown and nothing is done. New files belong to the owner of the directory, "
		"setuid bits and attributes are not taken over. Of a repository's .git only history "
		"is, as regular files; so too in nested and bare repositories. Nothing of .hg, .jj and "
		".svn is. --git-config takes these, except symbolic links in .git. A run that was cut off is finished by the next one, or "
		"with --resume, or undone with --undo.",
	.examples = "cay apply work --dry-run\n"
		    "cay apply work\n"
		    "cay apply work src/main.c docs\n"
		    "cay apply work --merge\n"
		    "cay apply --undo --to .",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
