/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy show: prints the built-in presets and the policies of sandboxes. */
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/policy/policy_history.h"
#include "ops/policy_record.h"
#include "policy/compile.h"
#include "policy/describe.h"

static int list_presets(const struct cmd_ctx *ctx)
{
	const struct policy_preset *p;

	for (size_t i = 0; (p = policy_preset_at(i)); i++) {
		struct json_line j;

		if (!ctx->json) {
			printf("%s\n", p->name);
			continue;
		}
		json_line_begin(&j);
		json_obj(&j.json);
		json_put_text(&j.json, "preset", p->name);
		json_end(&j.json);
		json_line_print(&j);
	}
	return 0;
}

static void print_preset(const struct cmd_ctx *ctx, const struct policy_preset *p)
{
	struct json_line j;

	if (!ctx->json) {
		fwrite(p->text.p, 1, p->text.n, stdout);
		return;
	}
	json_line_begin(&j);
	json_obj(&j.json);
	json_put_text(&j.json, "preset", p->name);
	json_put_str(&j.json, "text", p->text);
	json_end(&j.json);
	json_line_print(&j);
}

/* Prints a document with the history as comments; cay policy set accepts it. */
static int print_record(const struct policy_record *r, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY_DESCRIBED);
	int n = r->now ? policy_describe(r->now, &text) : 0;

	if (n < 0)
		return err_sys(e, -n, "print the policy of sandbox '%s'", r->id);
	if (r->now)
		fwrite(text.data, 1, text.len, stdout);
	else
		printf("# sandbox %s has no policy now\n", r->id);
	printf("# history%s\n", r->cut ? " (what came before is not in the trace any more)" : "");
	policy_history_print(r->history, "# ");
	return 0;
}

static int show_sandbox(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(policy_record_done) struct policy_record r = { 0 };

	if (cli_open_state(&c, e) < 0)
		return -1;
	if (op_policy_record(&c, ctx->args[0], &r, e) < 0) {
		if (e->kind != ERR_NOT_FOUND)
			return -1;
		(void)err_set(e, ERR_NOT_FOUND, "no preset or sandbox '%s'", ctx->args[0]);
		return err_hint(e, "cay policy show lists the presets, cay ls the sandboxes");
	}
	if (!r.now && !r.history)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no network", r.id);
	if (!ctx->json)
		return print_record(&r, e);
	PRINT_JSON(json_policy_record, &r);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	const struct policy_preset *p;

	if (cmd_need_args(ctx, 0, 1, "PRESET or SANDBOX", e) < 0)
		return -1;
	if (ctx->nargs == 0)
		return list_presets(ctx);
	p = policy_preset_find(str_of(ctx->args[0]));
	if (!p)
		return show_sandbox(ctx, e);
	print_preset(ctx, p);
	return 0;
}

const struct cmd cmd_policy_show = {
	.name = "policy show",
	.synopsis = "[PRESET|SANDBOX]",
	.summary = "List the presets, or print one, or the policy of a sandbox",
	.details = "Of a sandbox it prints what holds now as a document, with its history as "
		   "comments: when it changed, who changed it, and which rules came and went. Of a "
		   "sandbox that has ended there is only the history.",
	.examples = "cay policy show\ncay policy show coding > net.yaml\ncay policy show work",
	.run = run,
	.data = true,
	.complete = "none|coding|research|open",
};
