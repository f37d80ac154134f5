/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/doctor/doctor.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

enum { MARK_WIDTH = 9, NAME_WIDTH = 18 };

static const struct {
	const char *name;
	enum out_color color;
} marks[] = {
	[CHECK_OK] = { "ok", OUT_GREEN },
	[CHECK_NOTE] = { "note", OUT_YELLOW },
	[CHECK_MISSING] = { "missing", OUT_RED },
};

static void print_check(const struct check *c, bool color)
{
	printf("  %s%-*s%s%-*s", out_sgr(color, marks[c->state].color), MARK_WIDTH,
	       marks[c->state].name, out_sgr(color, OUT_PLAIN), NAME_WIDTH, c->name);
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

static void json_check(struct json *j, const struct check *c)
{
	json_obj(j);
	json_put_text(j, "name", c->name);
	json_put_text(j, "group", c->group);
	json_put_text(j, "state", marks[c->state].name);
	json_put_text(j, "finding", c->finding);
	json_put_text(j, "fix", c->fix);
	json_end(j);
}

static void json_level(struct json *j, const struct level *v)
{
	json_obj(j);
	json_put_text(j, "driver", v->driver);
	json_put_text(j, "profile", v->profile);
	json_put_text(j, "mode", v->mode);
	json_put_text(j, "level", v->level);
	json_put_text(j, "sentence", v->sentence);
	json_end(j);
}

static void print_json(const struct checks *l, const struct level *levels, int n)
{
	struct json_line j;

	json_line_begin(&j);
	json_obj(&j.json);
	json_put_arr(&j.json, "checks");
	for (int i = 0; i < l->n; i++)
		json_check(&j.json, &l->items[i]);
	json_end(&j.json);
	json_put_arr(&j.json, "drivers");
	for (int i = 0; i < n; i++)
		json_level(&j.json, &levels[i]);
	json_end(&j.json);
	json_end(&j.json);
	json_line_print(&j);
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
		print_json(&checks, levels, n);
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
