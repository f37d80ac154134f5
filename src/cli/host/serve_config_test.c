/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "t.h"

static const char *one, *two, *config;
static struct opt_list many;
static bool flag;
static const struct opt rows[] = {
	{ "one", 0, OPT_TEXT, "X", "", &one },	     { "two", 0, OPT_TEXT, "X", "", &two },
	{ "many", 0, OPT_LIST, "X", "", &many },     { "flag", 0, OPT_FLAG, NULL, "", &flag },
	{ "config", 0, OPT_TEXT, "X", "", &config }, { 0 },
};

static struct serve_config given;
static struct err error;

static int parse(const char *text)
{
	static char copy[4096];

	given = (struct serve_config){ .path = "f", .opts = rows };
	error = (struct err){ 0 };
	(void)str_copy(copy, sizeof copy, str_of(text));
	return serve_config_parse(&given, copy, &error);
}

static void reset(void)
{
	one = two = config = NULL;
	free(many.items);
	many = (struct opt_list){ 0 };
}

static void values_come_from_lines(void)
{
	reset();
	CHECK(parse("# a comment\n\n one =  a b = c \t\r\nmany=x\nmany = y") == 0);
	CHECK(strcmp(one, "a b = c") == 0 && !two && many.n == 2);
	CHECK(strcmp(many.items[0], "x") == 0 && strcmp(many.items[1], "y") == 0);
	CHECK(serve_config_blame(&given, &one, &error) == -1);
	CHECK(strstr(error.msg, "f:3") == error.msg);
}

static void the_command_line_wins(void)
{
	reset();
	one = "mine";
	CHECK(parse("one = other\ntwo = 2") == 0);
	CHECK(strcmp(one, "mine") == 0 && strcmp(two, "2") == 0);
	CHECK(serve_config_blame(&given, &one, &error) == -1 && error.msg[0] == '\0');
}

static void wrong_lines_are_errors_with_their_number(void)
{
	static const char *const bad[] = { "three = 1",	 "one",	       "one =",		  "= 1",
					   "flag = yes", "config = x", "one = 1\none = 2" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[100] = "# first\n";

		reset();
		(void)str_copy(text + 8, sizeof text - 8, str_of(bad[i]));
		CHECK(parse(text) == -1);
		CHECK(strstr(error.msg, strchr(bad[i], '\n') ? "f:3: " : "f:2: ") == error.msg);
	}
}

T_MAIN(T(values_come_from_lines), T(the_command_line_wins),
       T(wrong_lines_are_errors_with_their_number))
