/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"

enum { OPTIONS_MAX = 64 };

static struct {
	bool json, quiet, help;
	const char *color, *json_file;
	uint64_t json_fd;
} common;

static const struct opt common_rows[] = {
	{ "json", 0, OPT_FLAG, NULL, "Print JSON: one object, or one per line for lists",
	  &common.json },
	{ "quiet", 'q', OPT_FLAG, NULL, "Print ids only", &common.quiet },
	{ "json-file", 0, OPT_TEXT, "PATH", "Print JSON, and into this file", &common.json_file },
	{ "json-fd", 0, OPT_COUNT, "N", "Print JSON, and to this open descriptor",
	  &common.json_fd },
	{ "color", 0, OPT_TEXT, "auto|always|never", "When to use colours", &common.color },
	{ "help", 'h', OPT_FLAG, NULL, "Show this help", &common.help },
};
/*
 * The first rows are for commands that print data; the last two of those are for all commands with
 * --json.
 */
enum { COMMON_TO = 2, COMMON_DATA = 4 };

struct parser {
	struct cmd_ctx *ctx;
	int argc, at;
	char **argv;
	bool seen[OPTIONS_MAX];
};

static int own_count(const struct cmd *cmd)
{
	int n = 0;

	while (cmd->opts && cmd->opts[n].name)
		n++;
	return n;
}

static bool is_hidden_by_own(const struct cmd *cmd, const struct opt *o)
{
	for (int i = 0; i < own_count(cmd); i++)
		if (strcmp(cmd->opts[i].name, o->name) == 0)
			return true;
	return false;
}

/* The first common row that applies to the command. */
static size_t first_common(const struct cmd *cmd)
{
	if (cmd->data)
		return 0;
	return is_hidden_by_own(cmd, &common_rows[0]) ? COMMON_TO : COMMON_DATA;
}

const struct opt *option_at(const struct cmd *cmd, int i)
{
	int own = own_count(cmd);

	if (i < own)
		return &cmd->opts[i];
	i -= own;
	for (size_t k = first_common(cmd); k < ARRAY_LEN(common_rows); k++) {
		if (is_hidden_by_own(cmd, &common_rows[k]))
			continue;
		if (i-- == 0)
			return &common_rows[k];
	}
	return NULL;
}

bool option_is_common(const struct opt *o)
{
	for (size_t k = 0; k < ARRAY_LEN(common_rows); k++)
		if (o == &common_rows[k])
			return true;
	return false;
}

const struct opt *option_long(const struct cmd *cmd, struct str name)
{
	const struct opt *o;

	for (int i = 0; (o = option_at(cmd, i)); i++)
		if (str_is(name, o->name))
			return o;
	return NULL;
}

const struct opt *option_letter(const struct cmd *cmd, char letter)
{
	const struct opt *o;

	for (int i = 0; (o = option_at(cmd, i)); i++)
		if (o->letter == letter)
			return o;
	return NULL;
}

static uint64_t unit_ms(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = { { "", 1000 },	  { "ms", 1 },	    { "s", 1000 },
		      { "m", 60 * 1000 }, { "h", 3600000 }, { "d", 86400000 } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ms;
	return 0;
}

int duration_parse(const char *text, uint64_t *ret_ms)
{
	unsigned long long n;
	uint64_t ms;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || unit_ms(end) == 0)
		return -1;
	/* Half the range, so that adding a deadline to the clock cannot overflow. */
	if (__builtin_mul_overflow(n, unit_ms(end), &ms) || ms > UINT64_MAX / 2000000)
		return -1;
	*ret_ms = ms;
	return 0;
}

static int list_add(struct opt_list *l, const char *item)
{
	const char **items = reallocarray(l->items, (size_t)l->n + 1, sizeof *items);

	if (!items)
		return -ENOMEM;
	items[l->n++] = item;
	l->items = items;
	return 0;
}

static int set_value(const struct opt *o, const char *text, struct cmd_ctx *ctx, struct err *e)
{
	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)o->value = true;
		return 0;
	case OPT_TEXT:
		*(const char **)o->value = text;
		return 0;
	case OPT_LIST:
		return list_add(o->value, text) < 0 ? err_sys(e, ENOMEM, "--%s", o->name) : 0;
	case OPT_DURATION:
		if (duration_parse(text, o->value) < 0)
			return cmd_usage(
				ctx, e,
				"--%s '%s' is not a duration; write 500ms, 10s, 5m, 1h or 1d",
				o->name, text);
		return 0;
	case OPT_SIZE:
		if (size_parse(text, o->value) < 0)
			return cmd_usage(ctx, e, "--%s '%s' is not a size; write 512M, 2G or 1.5G",
					 o->name, text);
		return 0;
	case OPT_COUNT:
		if (count_parse(text, o->value) < 0)
			return cmd_usage(ctx, e, "--%s '%s' is not a number from 1 on", o->name,
					 text);
		return 0;
	case OPT_NUMBER:
		if (number_parse(text, o->value) < 0)
			return cmd_usage(ctx, e, "--%s '%s' is not a number; write 2, 0.5 or 1.25",
					 o->name, text);
		return 0;
	}
	return 0;
}

static int note_seen(struct parser *p, const struct opt *o, struct err *e)
{
	for (int i = 0; i < OPTIONS_MAX; i++) {
		if (option_at(p->ctx->cmd, i) != o)
			continue;
		if (p->seen[i] && o->kind != OPT_LIST)
			return cmd_usage(p->ctx, e, "option '--%s' is given twice", o->name);
		p->seen[i] = true;
		return 0;
	}
	return 0;
}

/* text: the value if it was part of the option's word, or NULL. */
static int take_option(struct parser *p, const struct opt *o, const char *text, struct err *e)
{
	if (note_seen(p, o, e) < 0)
		return -1;
	if (o->kind != OPT_FLAG && !text) {
		if (p->at >= p->argc)
			return cmd_usage(p->ctx, e, "option '--%s' needs a value: --%s %s", o->name,
					 o->name, o->arg ? o->arg : "VALUE");
		text = p->argv[p->at++];
	}
	return set_value(o, text, p->ctx, e);
}

static int unknown_long(struct parser *p, struct str name, struct err *e)
{
	struct suggest s = { 0 };
	const struct opt *o;
	char word[64];

	if (!str_copy(word, sizeof word, name))
		return cmd_usage(p->ctx, e, "unknown option '--%.*s'", STR_ARG(name));
	s.word = word;
	for (int i = 0; (o = option_at(p->ctx->cmd, i)); i++)
		suggest_offer(&s, o->name);
	if (!s.best)
		return cmd_usage(p->ctx, e, "unknown option '--%s'", word);
	return cmd_usage(p->ctx, e, "unknown option '--%s'; did you mean '--%s'?", word, s.best);
}

static int take_long(struct parser *p, const char *arg, struct err *e)
{
	const char *eq = strchr(arg, '=');
	struct str name = { arg, eq ? (size_t)(eq - arg) : strlen(arg) };
	const struct opt *o = option_long(p->ctx->cmd, name);

	if (!o)
		return unknown_long(p, name, e);
	if (eq && o->kind == OPT_FLAG)
		return cmd_usage(p->ctx, e, "option '--%s' takes no value", o->name);
	return take_option(p, o, eq ? eq + 1 : NULL, e);
}

/* -abc are flags; the first letter that takes a value takes the rest of the word as its value. */
static int take_short(struct parser *p, const char *arg, struct err *e)
{
	for (const char *c = arg; *c; c++) {
		const struct opt *o = option_letter(p->ctx->cmd, *c);

		if (!o)
			return cmd_usage(p->ctx, e, "unknown option '-%c'%s%s%s", *c,
					 c[1] || c != arg ? " in '-" : "",
					 c[1] || c != arg ? arg : "", c[1] || c != arg ? "'" : "");
		if (o->kind == OPT_FLAG) {
			if (take_option(p, o, NULL, e) < 0)
				return -1;
			continue;
		}
		if (c[1] == '=')
			c++;
		return take_option(p, o, c[1] ? c + 1 : NULL, e);
	}
	return 0;
}

static void take_rest(struct parser *p)
{
	while (p->at < p->argc)
		p->ctx->args[p->ctx->nargs++] = p->argv[p->at++];
}

static int take_word(struct parser *p, struct err *e)
{
	struct cmd_ctx *ctx = p->ctx;
	char *arg = p->argv[p->at++];

	if (strcmp(arg, "--") == 0) {
		ctx->has_dashes = true;
		ctx->dashes_at = ctx->nargs;
		take_rest(p);
		return 0;
	}
	if (arg[0] == '-' && arg[1] == '-')
		return take_long(p, arg + 2, e);
	if (arg[0] == '-' && arg[1])
		return take_short(p, arg + 1, e);
	ctx->args[ctx->nargs++] = arg;
	if (ctx->cmd->stop_at && ctx->nargs >= ctx->cmd->stop_at)
		take_rest(p);
	return 0;
}

/* The value of an option, from this word or the next one. NULL: another option, or no value. */
static const char *value_in(const struct parser *p, int i, const char *option)
{
	size_t n = strlen(option);

	if (strncmp(p->argv[i], option, n) != 0)
		return NULL;
	if (p->argv[i][n] == '=')
		return p->argv[i] + n + 1;
	return !p->argv[i][n] && i + 1 < p->argc ? p->argv[i + 1] : NULL;
}

/* After an error: check the remaining words for --json. */
static void look_for_json(const struct parser *p)
{
	const struct cmd *cmd = p->ctx->cmd;
	const char *value;

	if (!option_long(cmd, STR("json")))
		return;
	for (int i = p->at; i < p->argc; i++) {
		if (strcmp(p->argv[i], "--") == 0)
			return;
		common.json |= strcmp(p->argv[i], "--json") == 0;
		if ((value = value_in(p, i, "--json-file")))
			common.json_file = value;
		else if ((value = value_in(p, i, "--json-fd")))
			(void)count_parse(value, &common.json_fd);
		else if (cmd->stop_at && p->argv[i][0] != '-')
			return;
		else
			continue;
		i += strchr(p->argv[i], '=') == NULL;
	}
}

/* A command with its own --json passes the command's output through, and writes JSON elsewhere. */
static void settle_json(struct cmd_ctx *ctx)
{
	const struct opt *own = option_long(ctx->cmd, STR("json"));
	bool wanted = common.json || common.json_file || common.json_fd;

	if (common.json_file)
		ctx->json_file = common.json_file;
	if (common.json_fd)
		ctx->json_fd = common.json_fd;
	if (!own || option_is_common(own) || own->kind != OPT_FLAG) {
		ctx->json |= wanted;
		return;
	}
	*(bool *)own->value |= wanted || ctx->json;
	ctx->json_result = *(bool *)own->value;
	ctx->json = false;
}

static int check_color(struct cmd_ctx *ctx, struct err *e)
{
	if (!ctx->color || strcmp(ctx->color, "auto") == 0 || strcmp(ctx->color, "always") == 0 ||
	    strcmp(ctx->color, "never") == 0)
		return 0;
	return cmd_usage(ctx, e, "--color '%s' is none of auto, always, never", ctx->color);
}

int options_parse(struct cmd_ctx *ctx, int argc, char **argv, struct err *e)
{
	struct parser p = { .ctx = ctx, .argc = argc, .argv = argv };
	int r = 0;

	memset(&common, 0, sizeof common);
	ctx->args = argv;
	ctx->nargs = 0;
	while (r == 0 && p.at < argc && !common.help)
		r = take_word(&p, e);
	if (r < 0)
		look_for_json(&p);
	settle_json(ctx);
	ctx->quiet |= common.quiet;
	ctx->help |= common.help;
	if (common.color)
		ctx->color = common.color;
	if (r == 0 && ctx->nargs < argc)
		argv[ctx->nargs] = NULL; /* the command's arguments must end with NULL, like argv */
	return r < 0 ? r : check_color(ctx, e);
}
