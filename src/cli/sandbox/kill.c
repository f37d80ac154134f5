/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/destroy.h"
#include "ops/list.h"

static struct {
	bool all, yes, dry_run;
} o;

static struct opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL, "Every sandbox", &o.all },
	{ "yes", 'y', OPT_FLAG, NULL, "Do not ask before --all", &o.yes },
	{ "dry-run", 'n', OPT_FLAG, NULL, "Print what would be ended, end nothing", &o.dry_run },
	{ 0 },
};

/* The first error decides the exit code; each error is printed immediately. */
static void note_error(const struct cmd_ctx *ctx, const struct err *e, int *code)
{
	int c = cmd_report(ctx, e);

	if (*code == 0)
		*code = c;
}

static void print_ended(const struct cmd_ctx *ctx, const struct sandbox_row *row)
{
	struct json_line j;

	if (!ctx->json) {
		puts(row->id);
		return;
	}
	json_line_begin(&j);
	json_obj(&j.json);
	json_put_text(&j.json, "id", row->id);
	json_put_text(&j.json, "name", row->name);
	json_put_bool(&j.json, "ended", !o.dry_run);
	json_end(&j.json);
	json_line_print(&j);
}

static bool confirm(const struct sandbox_list *l)
{
	char answer[16] = "";

	if (o.yes || o.dry_run || !isatty(STDIN_FILENO) || l->n == 0)
		return true;
	for (int i = 0; i < l->n; i++)
		fprintf(stderr, "  %s  %s  %s\n", l->rows[i].id, l->rows[i].state,
			l->rows[i].name[0] ? l->rows[i].name : "-");
	fprintf(stderr, "End %d sandbox%s and delete all that is in %s? [y/N] ", l->n,
		l->n == 1 ? "" : "es", l->n == 1 ? "it" : "them");
	(void)fflush(stderr);
	return fgets(answer, sizeof answer, stdin) &&
	       (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0);
}

static int choose(struct cmd_ctx *ctx, struct cay *s, struct sandbox_list *l, int *code,
		  struct err *e)
{
	struct err one = { 0 };

	if (o.all)
		return sandbox_list_load(l, s, e);
	for (int i = 0; i < ctx->nargs; i++)
		if (sandbox_list_find(l, s, ctx->args[i], &one) < 0)
			note_error(ctx, &one, code);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(sandbox_list_done) struct sandbox_list list = { 0 };
	struct err one = { 0 };
	int code = 0;

	if (cmd_need_args(ctx, o.all ? 0 : 1, -1, "SANDBOX, or --all", e) < 0)
		return -1;
	if (o.all && ctx->nargs > 0)
		return cmd_usage(ctx, e, "--all and '%s': name sandboxes or take all",
				 ctx->args[0]);
	if (cli_open(&s, e) < 0 || choose(ctx, &s, &list, &code, e) < 0)
		return -1;
	if (o.all && !confirm(&list))
		return err_set(e, ERR_FAILED, "nothing was ended");
	for (int i = 0; i < list.n; i++) {
		if (o.dry_run || op_destroy(&s, list.rows[i].id, &one) == 0)
			print_ended(ctx, &list.rows[i]);
		else
			note_error(ctx, &one, &code);
	}
	return code;
}

const struct cmd cmd_kill = {
	.name = "kill",
	.synopsis = "SANDBOX... | --all [--yes]",
	.summary = "End sandboxes and remove them",
	.details = "Ends every process inside and deletes the sandbox's files. Its trace is kept "
		   "for a while. What a lost sandbox left behind is removed too, and a warden that "
		   "does not answer for 10 seconds is killed. Prints the ids of "
		   "what it ended; goes on after a failure, and exits with the code of the first.",
	.examples = "cay kill box\ncay kill k3x9 m7ab\ncay kill --all --yes",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
