/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/doctor/doctor.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

enum { MARK_WIDTH = 9, NAME_WIDTH = 18 };

static const enum out_color colors[] = {
	[CHECK_OK] = OUT_GREEN,
	[CHECK_NOTE] = OUT_YELLOW,
	[CHECK_MISSING] = OUT_RED,
};

static void print_check(const struct check *c, bool color)
{
	printf("  %s%-*s%s%-*s", out_sgr(color, colors[c->state]), MARK_WIDTH,
	       check_state_names[c->state], out_sgr(color, OUT_PLAIN), NAME_WIDTH, c->name);
	out_safe(c->finding);
	putchar('\n');
	if (!c->fix[0])
		return;
	printf("%*sfix: ", 2 + MARK_WIDTH, "");
	out_safe(c->fix);
	putchar('\n');
}

static void print_checks(const struct cmd_ctx *ctx, const struct checks *l)
{
	const char *group = "";

	for (int i = 0; i < l->n; i++) {
		const struct check *c = &l->items[i];

		if (ctx->quiet && c->state != CHECK_MISSING)
			continue;
		if (strcmp(group, c->group) != 0)
			printf("%s%s%s%s\n", group[0] ? "\n" : "",
			       out_sgr(ctx->color_out, OUT_BOLD), c->group,
			       out_sgr(ctx->color_out, OUT_PLAIN));
		group = c->group;
		print_check(c, ctx->color_out);
	}
	if (group[0])
		putchar('\n');
}

static void print_levels(const struct cmd_ctx *ctx, const struct level *levels, int n)
{
	printf("%sAssurance%s\n", out_sgr(ctx->color_out, OUT_BOLD),
	       out_sgr(ctx->color_out, OUT_PLAIN));
	for (int i = 0; i < n; i++)
		printf("  %s, %s, %s: %s: %s\n", levels[i].driver, levels[i].profile,
		       levels[i].mode, levels[i].level, levels[i].sentence);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	/* Static because it is large; used once per process. */
	static struct doctor_facts facts;
	static struct checks checks;
	struct level levels[LEVELS_MAX];
	int n;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0)
		return -1;
	doctor_gather(&facts);
	doctor_checks(&facts, &checks);
	n = doctor_levels(&facts, &checks, levels);
	if (ctx->json) {
		PRINT_JSON(json_doctor, &checks, levels, n);
	} else {
		print_checks(ctx, &checks);
		print_levels(ctx, levels, n);
	}
	return doctor_runs(&checks) ? 0 : 1;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.synopsis = "[--json]",
	.summary = "Tell what this host gives, and how to fix what is missing",
	.details =
		"Everything is tried, not guessed, and nothing is left behind. Exits with 0 where sandboxes can "
		"run, with 1 where they cannot. With -q only what is missing is shown.",
	.examples =
		"cay doctor\ncay doctor --json | jq '.checks[] | select(.state == \"missing\")'",
	.run = run,
	.data = true,
};
