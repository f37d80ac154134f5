/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/output.h"
#include "t.h"

const struct cmd *const commands[] = { NULL };

static const char *safe(struct str s)
{
	static char out[256];
	char *text = out_safe_dup(s);

	CHECK(text);
	(void)snprintf(out, sizeof out, "%s", text);
	free(text);
	return out;
}

static void nothing_that_steers_a_terminal_passes(void)
{
	CHECK_STR(safe(STR("a\033[2Jb")), "a\\x1b[2Jb");
	CHECK_STR(safe(STR("a\nb\tc\rd")), "a\\nb\\tc\\rd");
	CHECK_STR(safe(STR("\x7f")), "\\x7f");
	CHECK_STR(safe(STR("\xc2\x9b"
			   "31m")),
		  "\\x9b31m");
	CHECK_STR(safe(STR("\x9b")), "\\x9b");
	CHECK_STR(safe(STR("\xe2\x80\xae")), "\\u202e");
	CHECK_STR(safe(STR("\xf3\xa0\x81\xa1\xe2\x80\x8b")), "\\U000e0061\\u200b");
	CHECK_STR(safe((struct str){ "a\0b", 3 }), "a\\x00b");
}

static void good_text_passes_unchanged(void)
{
	CHECK_STR(safe(STR("grün \xe6\xbc\xa2 \xf0\x9f\x98\x80 \\ '\"")),
		  "grün \xe6\xbc\xa2 \xf0\x9f\x98\x80 \\ '\"");
}

static void bad_utf8_is_shown_byte_by_byte(void)
{
	CHECK_STR(safe(STR("\xc0\xaf")), "\\xc0\\xaf");
	CHECK_STR(safe(STR("\xed\xa0\x80")), "\\xed\\xa0\\x80");
	CHECK_STR(safe(STR("\xf4\x90\x80\x80")), "\\xf4\\x90\\x80\\x80");
	CHECK_STR(safe(STR("\xe6\xbc")), "\\xe6\\xbc");
	CHECK_STR(safe(STR("\xe0\x80\x80")), "\\xe0\\x80\\x80");
}

static void numbers_are_short(void)
{
	char b[OUT_NUMBER];

	CHECK_STR(out_size(0, b), "0B");
	CHECK_STR(out_size(999, b), "999B");
	CHECK_STR(out_size(1536, b), "1.5K");
	CHECK_STR(out_size(20 << 20, b), "20M");
	CHECK_STR(out_size(UINT64_MAX, b), "16E");
	CHECK_STR(out_duration(850, b), "850us");
	CHECK_STR(out_duration(12345, b), "12ms");
	CHECK_STR(out_duration(1290000, b), "1.2s");
	CHECK_STR(out_duration(184000000, b), "3m04s");
	CHECK_STR(out_duration(7500ull * 1000000, b), "2h05m");
	CHECK_STR(out_duration(100 * 3600ull * 1000000, b), "4d04h");
	CHECK_STR(out_age(0, 59 * NS_PER_S, b), "59s");
	CHECK_STR(out_age(0, 7199 * NS_PER_S, b), "1h");
	CHECK_STR(out_age(0, 10 * 86400 * NS_PER_S, b), "10d");
	CHECK_STR(out_age(9 * NS_PER_S, 3 * NS_PER_S, b), "0s");
}

static const struct out_col cols[] = {
	{ .title = "ID" },
	{ .title = "N", .right = true },
	{ .title = "TEMPLATE", .cut = true },
	{ .title = "DIR", .cut = true },
};

static const char *table(int width, bool header, bool color)
{
	static char out[1024];
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = 4 };
	FILE *f = fmemopen(out, sizeof out, "w");
	int r = 0;

	r |= out_cell(&t, OUT_PLAIN, "abcdefghijkl");
	r |= out_cellf(&t, OUT_GREEN, "%d", 7);
	r |= out_cell(&t, OUT_PLAIN, "a-template-name");
	r |= out_cell(&t, OUT_PLAIN, "/a/rather/long/path");
	r |= out_cell(&t, OUT_PLAIN, "b\033");
	r |= out_cellf(&t, OUT_PLAIN, "%d", 123);
	r |= out_cell(&t, OUT_PLAIN, "gr\xc3\xbcn");
	r |= out_cell(&t, OUT_PLAIN, NULL);
	CHECK(r == 0);
	out_table_print(&t, f, width, header, color);
	fclose(f);
	return out;
}

static void a_table_is_aligned_without_blanks_at_the_end(void)
{
	CHECK_STR(table(0, true, false), "ID              N  TEMPLATE         DIR\n"
					 "abcdefghijkl    7  a-template-name  /a/rather/long/path\n"
					 "b\\x1b         123  gr\xc3\xbcn             -\n");
}

static void a_narrow_terminal_cuts_only_what_may_be_cut(void)
{
	CHECK_STR(table(43, false, false), "abcdefghijkl    7  a-template…  /a/rather/…\n"
					   "b\\x1b         123  gr\xc3\xbcn         -\n");
	/* Narrower than the columns that must not be cut: they stay whole. */
	CHECK(strstr(table(10, false, false), "abcdefghijkl"));
}

static void colour_appears_only_when_asked_for(void)
{
	CHECK(!strchr(table(0, true, false), '\033'));
	CHECK(strstr(table(0, true, true), "\033[32m  7\033[0m"));
}

static const char *json_line(bool whole)
{
	static char out[256];
	FILE *f = fmemopen(out, sizeof out, "w");
	struct json_line l;

	json_line_begin(&l);
	json_obj(&l.json);
	json_put_text(&l.json, "v", "a\n");
	if (whole)
		json_end(&l.json);
	json_line_print_to(&l, f);
	fclose(f);
	return out;
}

static void a_line_of_json_is_whole_or_an_error(void)
{
	CHECK_STR(json_line(true), "{\"v\":\"a\\n\"}\n");
	CHECK(strncmp(json_line(false), "{\"error\":", 9) == 0);
}

static const char *wrapped(const char *text, int indent, int at)
{
	static char out[1024];
	FILE *f = fmemopen(out, sizeof out, "w");

	out_wrap(f, text, indent, at);
	fclose(f);
	return out;
}

static void wrapping_stays_within_80_columns(void)
{
	const char *text =
		wrapped("one two three four five six seven eight nine ten eleven twelve "
			"thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty",
			4, 20);
	const char *nl = strchr(text, '\n');

	CHECK(nl && nl - text <= 60 && strncmp(nl, "\n    ", 5) == 0);
	CHECK(strstr(text, "nineteen twenty\n"));
	for (; nl && nl[1]; nl = strchr(nl + 1, '\n'))
		CHECK(strcspn(nl + 1, "\n") <= 80);
}

static void paragraphs_and_indented_lines_survive_wrapping(void)
{
	CHECK_STR(wrapped("one\ntwo\n\nthree\n  code\n", 0, 0), "one two\n\nthree\n  code\n");
}

T_MAIN(T(nothing_that_steers_a_terminal_passes), T(good_text_passes_unchanged),
       T(bad_utf8_is_shown_byte_by_byte), T(numbers_are_short),
       T(a_table_is_aligned_without_blanks_at_the_end),
       T(a_narrow_terminal_cuts_only_what_may_be_cut), T(colour_appears_only_when_asked_for),
       T(a_line_of_json_is_whole_or_an_error), T(wrapping_stays_within_80_columns),
       T(paragraphs_and_indented_lines_survive_wrapping))
