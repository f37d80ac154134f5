/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy show: the presets, which are part of the program. */
#include <stdio.h>

#include "cli/commands.h"
#include "policy/compile.h"

static int run(struct cmd_ctx *ctx, struct err *e)
{
	const struct policy_preset *p;

	if (cmd_need_args(ctx, 0, 1, "PRESET", e) < 0)
		return -1;
	if (ctx->nargs == 0) {
		for (size_t i = 0; (p = policy_preset_at(i)); i++)
			printf("%s\n", p->name);
		return 0;
	}
	p = policy_preset_find(str_of(ctx->args[0]));
	if (!p) {
		(void)err_set(e, ERR_NOT_FOUND, "no preset '%s'", ctx->args[0]);
		return err_hint(e, "cay policy show lists them");
	}
	fwrite(p->text.p, 1, p->text.n, stdout);
	return 0;
}

const struct cmd cmd_policy_show = {
	.name = "policy show",
	.synopsis = "[PRESET]",
	.summary = "List the presets, or print one as a document",
	.examples = "cay policy show\ncay policy show coding > net.yaml",
	.run = run,
	.complete = "none|coding|research|open",
};
