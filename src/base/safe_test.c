/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"

#include <errno.h>

#include "t.h"

static void check(struct str in, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	CHECK(text_safe(&b, in) == 0);
	CHECK_STR(b.data ? b.data : "", want);
}

static void readable_text_is_untouched(void)
{
	check(STR("plain 'text' \\ \"x\""), "plain 'text' \\ \"x\"");
	check(STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x8f\x9d"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8f\x9d");
	check(STR(""), "");
}

static void control_characters_are_escaped(void)
{
	check(STR("a\nb\tc\r\a"), "a\\nb\\tc\\r\\a");
	check(STR("\x1b[31m\x7f\0z"), "\\x1b[31m\\x7f\\x00z");
	check(STR("\xc2\x9b"
		  "31m"),
	      "\\u009b31m");
	check(STR("\xc2\xa0"), "\xc2\xa0");
	check(STR("a\xe2\x80\xae"
		  "b\xe2\x81\xa6\xe2\x80\xa8"),
	      "a\\u202eb\\u2066\\u2028");
}

static void what_cannot_be_seen_is_escaped(void)
{
	check(STR("a\xf3\xa0\x81\xa1z"), "a\\U000e0061z"); /* a tag: an invisible 'a' */
	check(STR("\xf3\xa0\x84\x80"), "\\U000e0100");	   /* variation selector 17 */
	check(STR("a\xe2\x80\x8b\xe2\x81\xa0\xef\xbb\xbf\xc2\xad"
		  "b"),
	      "a\\u200b\\u2060\\ufeff\\u00adb");
	check(STR("\xe3\x85\xa4\xef\xb8\x8f"), "\\u3164\\ufe0f");
	check(STR("\xf0\x9f\x98\x80\xe0\xa4\x95"), "\xf0\x9f\x98\x80\xe0\xa4\x95");
}

static void every_byte_that_is_not_utf8_is_shown(void)
{
	check(STR("a\xff\x9b"
		  "31m\xc3"),
	      "a\\xff\\x9b31m\\xc3");
}

static void output_never_holds_a_control_byte(void)
{
	for (int a = 0; a < 256; a++) {
		for (int c = 0; c < 256; c++) {
			auto_done(buf_done) struct buf b = BUF_INIT(64);
			char in[2] = { (char)a, (char)c };

			CHECK(text_safe(&b, (struct str){ in, 2 }) == 0);
			for (size_t i = 0; i < b.len; i++)
				CHECK((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f);
		}
	}
}

static void a_cut_keeps_characters_whole(void)
{
	for (size_t most = 0; most < 12; most++) {
		auto_done(buf_done) struct buf b = BUF_INIT(64);

		CHECK(buf_add_c(&b, "> ") == 0);
		CHECK(text_safe_cut(&b, STR("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n"), most) == 0);
		CHECK(b.len - 2 <= most && strlen(b.data) == b.len);
		if (most == 10)
			CHECK_STR(b.data, "> \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\\n");
		if (most == 9)
			CHECK_STR(b.data, "> \xc3\xa9\xc3\xa9\xc3\xa9\xe2\x80\xa6");
		if (most == 3)
			CHECK_STR(b.data, "> \xe2\x80\xa6");
	}
}

static void the_ceiling_is_reported(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(3);

	CHECK(text_safe(&b, STR("abcd")) == -E2BIG);
}

T_MAIN(T(readable_text_is_untouched), T(control_characters_are_escaped),
       T(what_cannot_be_seen_is_escaped), T(every_byte_that_is_not_utf8_is_shown),
       T(output_never_holds_a_control_byte), T(a_cut_keeps_characters_whole),
       T(the_ceiling_is_reported))
