/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/apply_print.h"

#include "cli/output.h"
#include "ops/json.h"

static void print_line(void *ctx, const struct apply_change *c)
{
	FILE *f = c->reason ? stderr : ctx;

	fprintf(f, "%-9s", c->action);
	out_safe_to(f, str_of(c->dir));
	putc('/', f);
	out_safe_to(f, str_of(c->path));
	fprintf(f, "%s%s\n", c->reason ? ": " : "", c->reason ? c->reason : "");
}

static void print_json(void *ctx, const struct apply_change *c)
{
	(void)ctx;
	PRINT_JSON(json_apply_change, c);
}

void apply_print(const struct apply_planned *p, const struct cmd_ctx *ctx, bool refused, FILE *f)
{
	if (!ctx->quiet)
		apply_each(p, refused, ctx->json ? print_json : print_line, f);
}
