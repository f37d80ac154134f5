/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/output.h"

/* Commands by purpose. A command that no row names comes last. */
static const struct {
	const char *title;
	const char *names; /* separated by blanks, with a blank at both ends */
} groups[] = {
	{ "Run", " run create exec shell cp calls logs attach " },
	{ "Look", " ls show why ps trace diff net " },
	{ "State", " snapshot snapshots rollback fork tx apply explore " },
	{ "Time", " pause resume extend kill gc " },
	{ "Network", " port policy check policy explain policy show policy set " },
	{ "Server", " serve key create key ls key revoke " },
	{ "Cay", " doctor setup pool set pool ls completion version help " },
};

enum { TITLE_WIDTH = 10, NAME_WIDTH = 16, OPTION_WIDTH = 28 };

static bool is_named(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = names; (p = strstr(p, name)); p += n)
		if (p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

static size_t group_of(const struct cmd *cmd)
{
	size_t g = 0;

	while (g < ARRAY_LEN(groups) && !is_named(groups[g].names, cmd->name))
		g++;
	return g;
}

static void print_group(size_t g, bool color)
{
	const char *title = g < ARRAY_LEN(groups) ? groups[g].title : "More";

	for (int i = 0; commands[i]; i++) {
		const struct cmd *c = commands[i];

		if (c->hidden || group_of(c) != g)
			continue;
		printf("%s%-*s%s%-*s%s\n", out_sgr(color, OUT_BOLD), TITLE_WIDTH, title,
		       out_sgr(color, OUT_PLAIN), NAME_WIDTH, c->name, c->summary);
		title = "";
	}
}

int help_overview(bool color)
{
	printf("Cay gives every coding agent a sandbox of its own.\n"
	       "\n"
	       "%sFirst steps%s\n"
	       "  cay run -- echo hello      one command in a fresh sandbox\n"
	       "  cay run --dir . -- bash    this directory inside, as a copy that costs nothing\n"
	       "  cay create --name box      a sandbox that stays; then: cay exec box ls\n"
	       "\n",
	       out_sgr(color, OUT_BOLD), out_sgr(color, OUT_PLAIN));
	for (size_t g = 0; g <= ARRAY_LEN(groups); g++)
		print_group(g, color);
	printf("\n'cay COMMAND --help' says more about one.\n");
	return 0;
}

int help_group(const char *group, bool color)
{
	printf("%sUsage:%s cay %s COMMAND\n\n", out_sgr(color, OUT_BOLD), out_sgr(color, OUT_PLAIN),
	       group);
	for (int i = 0; commands[i]; i++)
		if (!commands[i]->hidden && cmd_of_group(commands[i], group))
			printf("  %-*s%s\n", NAME_WIDTH, commands[i]->name, commands[i]->summary);
	printf("\n'cay %s COMMAND --help' says more about one.\n", group);
	return 0;
}

static void print_option(const struct opt *o)
{
	char left[128], letter[] = "-x, ";
	int n;

	letter[1] = o->letter;
	n = snprintf(left, sizeof left, "  %s--%s%s%s", o->letter ? letter : "    ", o->name,
		     o->kind == OPT_FLAG ? "" : " ",
		     o->kind == OPT_FLAG ? "" : (o->arg ? o->arg : "VALUE"));
	printf("%-*s", OPTION_WIDTH, left);
	if (n >= OPTION_WIDTH)
		printf("\n%*s", OPTION_WIDTH, "");
	out_wrap(stdout, o->help, OPTION_WIDTH, OPTION_WIDTH);
}

static void print_options(const struct cmd *cmd, bool common)
{
	const struct opt *o;

	for (int i = 0; (o = option_at(cmd, i)); i++)
		if (option_is_common(o) == common)
			print_option(o);
}

/* Print every line of text, indented. */
static void print_lines(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		printf("  %.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

int help_command(const struct cmd *cmd, bool color)
{
	const char *bold = out_sgr(color, OUT_BOLD), *plain = out_sgr(color, OUT_PLAIN);

	printf("%sUsage:%s cay %s%s%s\n\n", bold, plain, cmd->name, cmd->synopsis ? " " : "",
	       cmd->synopsis ? cmd->synopsis : "");
	out_wrap(stdout, cmd->summary, 0, 0);
	if (cmd->details) {
		putchar('\n');
		out_wrap(stdout, cmd->details, 0, 0);
	}
	if (!cmd->raw) {
		printf("\n%sOptions%s\n", bold, plain);
		print_options(cmd, false);
		print_options(cmd, true);
	}
	if (cmd->examples) {
		printf("\n%sExamples%s\n", bold, plain);
		print_lines(cmd->examples);
	}
	return 0;
}

static bool want_man;
static struct opt opts[] = {
	{ "man", 0, OPT_FLAG, NULL, "Print the manual page, for: man -l -", &want_man },
	{ 0 },
};

static int run_help(struct cmd_ctx *ctx, struct err *e)
{
	const struct cmd *cmd;
	int used = 0;

	if (want_man)
		return help_man();
	if (cmd_need_args(ctx, 0, 2, "COMMAND", e) < 0)
		return -1;
	if (ctx->nargs == 0)
		return help_overview(ctx->color_out);
	cmd = cmd_find(ctx->args, ctx->nargs, &used);
	if (!cmd && ctx->nargs == 1 && cmd_is_group(ctx->args[0]))
		return help_group(ctx->args[0], ctx->color_out);
	if (!cmd)
		return cmd_unknown(ctx, ctx->args, ctx->nargs, e);
	if (ctx->nargs > used)
		return cmd_need_args(ctx, 0, used, "COMMAND", e);
	return help_command(cmd, ctx->color_out);
}

const struct cmd cmd_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "Show what there is, or all about one command",
	.examples = "cay help\ncay help run",
	.run = run_help,
	.opts = opts,
	.complete = "command-name",
};
