/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "t.h"

static void valid_text_is_accepted(void)
{
	CHECK(utf8_valid(STR_NONE));
	CHECK(utf8_valid(STR("plain ascii, longer than one word of eight")));
	CHECK(utf8_valid(STR("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8f\x9d")));
	CHECK(utf8_valid(STR("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xc2\x80\0")));
}

static void malformed_text_is_refused(void)
{
	static const struct str bad[] = {
		STR("\x80"),
		STR("\xff"),
		STR("\xc0\x80"),
		STR("\xc1\xbf"),
		STR("\xe0\x9f\xbf"),
		STR("\xf0\x8f\xbf\xbf"),
		STR("\xed\xa0\x80"),
		STR("\xed\xbf\xbf"),
		STR("\xf4\x90\x80\x80"),
		STR("\xf5\x80\x80\x80"),
		STR("\xe2\x82"),
		STR("\xf0\x9f\x8f"),
		STR("12345678\xc3"),
		STR("1234567\xc3(901234567"),
		STR("\xe2(\xac"),
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(!utf8_valid(bad[i]));
}

static void every_code_point_survives_decoding(void)
{
	for (uint32_t c = 0x800; c < 0x110000; c++) {
		char p[4];
		size_t n = c < 0x10000 ? 3 : 4;
		uint32_t got = 0;
		bool surrogate = c >= 0xd800 && c <= 0xdfff;

		p[0] = (char)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
		p[n - 3] = (char)(n == 3 ? p[0] : (char)(0x80 | (c >> 12 & 0x3f)));
		p[n - 2] = (char)(0x80 | (c >> 6 & 0x3f));
		p[n - 1] = (char)(0x80 | (c & 0x3f));
		CHECK(utf8_next((struct str){ p, n }, &got) == (surrogate ? 0 : n));
		CHECK(surrogate || got == c);
	}
}

T_MAIN(T(valid_text_is_accepted), T(malformed_text_is_refused),
       T(every_code_point_survives_decoding))
