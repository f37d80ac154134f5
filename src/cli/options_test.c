/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "cli/cli_test.h"
#include "cli/options.h"

static struct {
	bool all, tty;
	const char *template_;
	struct opt_list envs;
	uint64_t timeout_ms;
} o;

static struct opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL, "all", &o.all },
	{ "tty", 't', OPT_FLAG, NULL, "tty", &o.tty },
	{ "template", 'T', OPT_TEXT, "NAME", "template", &o.template_ },
	{ "env", 'e', OPT_LIST, "K=V", "env", &o.envs },
	{ "timeout", 0, OPT_DURATION, "TIME", "timeout", &o.timeout_ms },
	{ 0 },
};
static struct cmd cmd = { .name = "run", .synopsis = "CMD", .opts = opts, .data = true };
const struct cmd *const commands[] = { NULL };

static struct cmd_ctx ctx;
static struct err e;

static int parse(const char *a, const char *b, const char *c, const char *d)
{
	static const char *argv[5];
	int argc = 0;

	argv[0] = a, argv[1] = b, argv[2] = c, argv[3] = d;
	while (argv[argc])
		argc++;
	ctx = (struct cmd_ctx){ .cmd = &cmd };
	return options_parse(&ctx, argc, (char **)argv, &e);
}

static void a_value_may_follow_or_be_joined(void)
{
	CHECK(parse("--template", "host", NULL, NULL) == 0);
	CHECK_STR(o.template_, "host");
	CHECK(parse("--template=a=b", NULL, NULL, NULL) == 0);
	CHECK_STR(o.template_, "a=b");
	CHECK(parse("--template=", NULL, NULL, NULL) == 0);
	CHECK_STR(o.template_, "");
	CHECK(parse("-Tx", NULL, NULL, NULL) == 0);
	CHECK_STR(o.template_, "x");
	CHECK(parse("-T", "-y", NULL, NULL) == 0);
	CHECK_STR(o.template_, "-y");
}

static void flags_cluster(void)
{
	CHECK(parse("-atTdeb", "pos", NULL, NULL) == 0);
	CHECK(o.all && o.tty && ctx.nargs == 1);
	CHECK_STR(o.template_, "deb");
}

static void lists_collect_in_order(void)
{
	CHECK(parse("--env", "A=1", "-eB=2", "--env=C=3") == 0);
	CHECK(o.envs.n == 3);
	CHECK_STR(o.envs.items[0], "A=1");
	CHECK_STR(o.envs.items[1], "B=2");
	CHECK_STR(o.envs.items[2], "C=3");
}

static void options_may_stand_after_positionals(void)
{
	CHECK(parse("one", "--all", "-", "two") == 0);
	CHECK(o.all && ctx.nargs == 3);
	CHECK_STR(ctx.args[1], "-");
	CHECK_STR(ctx.args[2], "two");
}

static void dashes_end_options_and_are_dropped_once(void)
{
	CHECK(parse("one", "--", "--all", "--") == 0);
	CHECK(!o.all && ctx.nargs == 3 && ctx.has_dashes && ctx.dashes_at == 1);
	CHECK_STR(ctx.args[1], "--all");
	CHECK_STR(ctx.args[2], "--");
}

static void a_commands_own_options_are_left_alone_after_the_first_positional(void)
{
	cmd.stop_at = 1;
	CHECK(parse("--all", "ls", "--tty", "--help") == 0);
	CHECK(o.all && !o.tty && !ctx.help && ctx.nargs == 3);
	CHECK_STR(ctx.args[1], "--tty");
}

static void or_after_the_second(void)
{
	cmd.stop_at = 2;
	CHECK(parse("id", "--all", "ls", "--bogus") == 0);
	CHECK(o.all && ctx.nargs == 3 && !ctx.has_dashes);
	CHECK_STR(ctx.args[2], "--bogus");
	CHECK(parse("id", "--", "--bogus", NULL) == 0);
	CHECK(ctx.has_dashes && ctx.dashes_at == 1 && ctx.nargs == 2);
}

static void dashes_after_the_stop_belong_to_the_command(void)
{
	cmd.stop_at = 1;
	CHECK(parse("sh", "--", "x", NULL) == 0);
	CHECK(!ctx.has_dashes && ctx.nargs == 3);
}

static void an_unknown_option_names_the_nearest(void)
{
	CHECK(parse("--tempalte", "x", NULL, NULL) < 0);
	CHECK_STR(e.msg, "unknown option '--tempalte'; did you mean '--template'?");
	CHECK(e.kind == ERR_INVALID && ctx.usage);
	CHECK(parse("--tempalte=host", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "unknown option '--tempalte'; did you mean '--template'?");
	CHECK(parse("--frobnicate", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "unknown option '--frobnicate'");
	CHECK(parse("-x", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "unknown option '-x'");
	CHECK(parse("-ax", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "unknown option '-x' in '-ax'");
}

static void mistakes_about_values_are_named(void)
{
	CHECK(parse("--template", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "option '--template' needs a value: --template NAME");
	CHECK(parse("--all=yes", NULL, NULL, NULL) < 0);
	CHECK_STR(e.msg, "option '--all' takes no value");
	CHECK(parse("--template=a", "-T", "b", NULL) < 0);
	CHECK_STR(e.msg, "option '--template' is given twice");
	CHECK(parse("--timeout", "10 years", NULL, NULL) < 0);
	CHECK_HAS(e.msg, "--timeout '10 years' is not a duration");
}

static void durations_have_units(void)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "500ms", 500 },	 { "10s", 10000 }, { "5m", 300000 }, { "1h", 3600000 },
		     { "1d", 86400000 }, { "7", 7000 },	   { "0", 0 } };
	static const char *const bad[] = { "",
					   "s",
					   "-1s",
					   "+1",
					   " 1",
					   "1 s",
					   "1.5s",
					   "1S",
					   "1w",
					   "ms",
					   "1sm",
					   "0x10",
					   "99999999999999999999",
					   "18446744073709551615d" };
	uint64_t ms = 1;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(duration_parse(good[i].text, &ms) == 0);
		CHECK(ms == good[i].ms);
	}
	ms = 77;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(duration_parse(bad[i], &ms) < 0 && ms == 77);
}

static void json_is_known_even_behind_a_mistake(void)
{
	CHECK(parse("--bogus", "x", "--json", NULL) < 0);
	CHECK(ctx.json);
	CHECK(parse("--bogus", "--", "--json", NULL) < 0);
	CHECK(!ctx.json);
	cmd.stop_at = 1;
	CHECK(parse("--bogus", "ls", "--json", NULL) < 0);
	CHECK(!ctx.json);
}

static void help_stops_the_parse(void)
{
	CHECK(parse("--help", "--bogus", NULL, NULL) == 0);
	CHECK(ctx.help);
}

static void a_commands_own_row_hides_a_common_one(void)
{
	static bool own;
	static struct opt with_json[] = { { "json", 0, OPT_FLAG, NULL, "own", &own }, { 0 } };
	int rows = 0;

	cmd.opts = with_json;
	CHECK(parse("--json", NULL, NULL, NULL) == 0);
	CHECK(own && !ctx.json);
	for (int i = 0; option_at(&cmd, i); i++)
		rows += strcmp(option_at(&cmd, i)->name, "json") == 0;
	CHECK(rows == 1);
}

static void only_commands_with_data_take_json(void)
{
	cmd.data = false;
	CHECK(parse("--json", NULL, NULL, NULL) < 0);
	CHECK(parse("-q", NULL, NULL, NULL) < 0);
}

static void color_takes_three_words(void)
{
	CHECK(parse("--color=always", NULL, NULL, NULL) == 0);
	CHECK(parse("--color=maybe", NULL, NULL, NULL) < 0);
	CHECK_HAS(e.msg, "'maybe'");
}

T_MAIN(T(a_value_may_follow_or_be_joined), T(flags_cluster), T(lists_collect_in_order),
       T(options_may_stand_after_positionals), T(dashes_end_options_and_are_dropped_once),
       T(a_commands_own_options_are_left_alone_after_the_first_positional), T(or_after_the_second),
       T(dashes_after_the_stop_belong_to_the_command), T(an_unknown_option_names_the_nearest),
       T(mistakes_about_values_are_named), T(durations_have_units),
       T(json_is_known_even_behind_a_mistake), T(help_stops_the_parse),
       T(a_commands_own_row_hides_a_common_one), T(only_commands_with_data_take_json),
       T(color_takes_three_words))
