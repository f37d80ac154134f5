/* SPDX-License-Identifier: Apache-2.0 */
/* cay diff: shows what a sandbox changed, or how two sandboxes or snapshots differ. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/context.h"
#include "cli/output.h"
#include "cli/state/diff_print.h"
#include "diff/patch_show.h"
#include "ops/json.h"

static struct {
	const char *call, *from;
	bool stat, patch, no_renames;
} o;

static struct opt opts[] = {
	{ "stat", 0, OPT_FLAG, NULL, "Also count lines, and sum up", &o.stat },
	{ "patch", 'p', OPT_FLAG, NULL, "A patch that git apply takes, binary files included",
	  &o.patch },
	{ "call", 0, OPT_TEXT, "CALL",
	  "Only files that this call changed: its number, or your id of it", &o.call },
	{ "from", 0, OPT_TEXT, "SNAPSHOT",
	  "Compare with this snapshot instead of what the sandbox started from", &o.from },
	{ "no-renames", 0, OPT_FLAG, NULL, "Show a renamed file as one deleted and one added",
	  &o.no_renames },
	{ 0 },
};

static int print_change(void *ctx, const struct diff_change *c)
{
	if (((const struct cmd_ctx *)ctx)->json)
		PRINT_JSON(json_diff_change, c);
	else if (c->counted || !diff_is_implied(c->entry))
		diff_print_line(ctx, c);
	return 0;
}

static void print_notes(const struct diff_result *r)
{
	if (o.patch && r->totals.omitted)
		fprintf(stderr,
			"cay: %llu changes are not in the patch, or not all of them: git keeps no "
			"owners, attributes, devices, files above 1 GiB, nor modes but x\n",
			(unsigned long long)r->totals.omitted);
	if (r->guarded)
		fprintf(stderr,
			"cay: %llu changes are not in the patch: they are of .git, or could make git or "
			"its like run a command; cay apply --dry-run lists them\n",
			(unsigned long long)r->guarded);
	cli_print_warnings(&r->warnings);
}

/* git apply accepts a patch that lacks these files, so report the gap as an error here. */
static int fail_changed(const struct diff_result *r, struct err *e)
{
	(void)err_set(e, ERR_CONFLICT,
		      "%llu changed files are not in the patch, such as '%.200s': the host changed "
		      "them since, and what the sandbox started from was not kept",
		      (unsigned long long)r->totals.host_changed, r->host_changed_first);
	return err_code(e, "diff.host_changed", NULL);
}

/* The second word may be a sandbox or snapshot, unless it looks like a path. */
static void take_words(const struct cmd_ctx *ctx, struct diff_spec *spec)
{
	int first = 1;

	if (ctx->nargs > 1 && !o.from && !strchr(ctx->args[1], '/') && ctx->args[1][0] != '.' &&
	    !(ctx->has_dashes && ctx->dashes_at <= 1))
		spec->to_or_path = ctx->args[first++];
	spec->sandbox = ctx->args[0];
	spec->paths = (const char *const *)ctx->args + first;
	spec->npaths = ctx->nargs - first;
}

static int compare(const struct diff_spec *spec, struct diff_result *ret, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };

	return cli_open(&c, e) < 0 ? -1 : op_diff(&c, spec, ret, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct diff_spec spec = { .from = o.from,
				  .call = o.call,
				  .no_renames = o.no_renames,
				  .count = o.stat && !ctx->quiet,
				  .fn = ctx->quiet ? NULL : print_change,
				  .ctx = ctx };
	struct diff_result got;
	int r;

	if (cmd_need_args(ctx, 1, -1, "SANDBOX", e) < 0)
		return -1;
	if (o.patch && (o.stat || ctx->json))
		return cmd_usage(ctx, e, "--patch goes with neither --stat nor --json");
	take_words(ctx, &spec);
	if (o.patch && !ctx->quiet) {
		spec.patch = isatty(STDOUT_FILENO) ? patch_show_open(stdout) : stdout;
		if (!spec.patch)
			return err_sys(e, ENOMEM, "show the patch");
	}
	r = compare(&spec, &got, e);
	if (spec.patch && spec.patch != stdout)
		(void)fclose(spec.patch);
	if (r < 0)
		return -1;
	if (spec.count && !ctx->json)
		diff_print_totals(stdout, &got.totals);
	(void)fflush(stdout);
	print_notes(&got);
	if (got.totals.host_changed && o.patch)
		return fail_changed(&got, e);
	return ctx->quiet && got.changes ? 1 : 0;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.synopsis = "[options] SANDBOX [SANDBOX|SNAPSHOT] [--] [PATH...]",
	.summary = "Show what a sandbox changed, or how two of them differ",
	.details =
		"Without a second sandbox the comparison is with what the sandbox started from. "
		"A added, D deleted, M changed, R renamed, T of another kind, m only mode, owner or "
		"attributes. Times do not count. Paths are inside the sandbox; relative ones begin at "
		"its first --dir. --patch is about that directory, with names from there on, unless "
		"paths are named. A patch never undoes what the host did to a file since: it is against "
		"what the sandbox started from, so that git apply finds the conflict; where that is "
		"not known the file is left out, and the exit code is 1. On a terminal control "
		"characters in a patch are shown as escapes. Works while commands run, and on lost sandboxes. With -q nothing is "
		"shown and the exit code is 1 where something differs.",
	.examples = "cay diff work\n"
		    "cay diff work --stat src\n"
		    "cay diff work --patch | git apply\n"
		    "cay diff work --from before-upgrade\n"
		    "cay diff work --call 3 --json\n"
		    "cay diff try-1 try-2",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
