/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sniff.h"

#include "base/cleanup.h"
#include "t.h"

static void first_bytes_tell(void)
{
	static const struct {
		struct str in;
		enum sniff want;
	} rows[] = {
		{ STR("\x16\3\1\2\0"), SNIFF_TLS },
		{ STR("GET / HTTP/1.1"), SNIFF_HTTP },
		{ STR("GET /old\r\n"), SNIFF_HTTP },
		{ STR("GET\t/"), SNIFF_HTTP },
		{ STR("get / HTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR("X!Y\t/\tHTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR("FOO / HTTP/1.0"), SNIFF_HTTP },
		{ STR("\r\nGET /"), SNIFF_HTTP },
		{ STR("\n"), SNIFF_HTTP },
		{ STR("PRI * HTTP/2.0\r\n"), SNIFF_HTTP },
		{ STR("M-SEARCH * "), SNIFF_HTTP },
		{ STR("SSH-2.0-x"), SNIFF_SSH },
		{ STR("\x80\x2e\1"), SNIFF_OTHER },
		{ STR("\x16\2"), SNIFF_OTHER },
		{ STR("\0\0\0\x08"), SNIFF_OTHER },
		{ STR("EHLO me\r\n"), SNIFF_OTHER },
		{ STR("USER anonymous\r\n"), SNIFF_OTHER },
		{ STR("a001 LOGIN x y\r\n"), SNIFF_OTHER },
		{ STR("*1\r\n$4\r\nPING\r\n"), SNIFF_OTHER },
		{ STR("get key\r\n"), SNIFF_OTHER },
		{ STR("QUIT\r\n"), SNIFF_OTHER },
		{ STR(" GET / "), SNIFF_OTHER },
		{ STR("EHLO me"), SNIFF_MORE },
		{ STR("GET"), SNIFF_LIKELY },
		{ STR("SSH"), SNIFF_LIKELY },
		{ STR("P"), SNIFF_LIKELY },
		{ STR("echoed"), SNIFF_MORE },
		{ STR("AMQP\0\0\x09\1"), SNIFF_OTHER },
		{ STR("0032git-upload-pack /p\0host=x\0"), SNIFF_OTHER },
		{ STR("GET /\0 HTTP/1.1"), SNIFF_OTHER },
		{ STR("\x16"), SNIFF_LIKELY },
		{ STR(""), SNIFF_MORE },
		{ STR("{\"a\":1}"), SNIFF_MORE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (sniff(rows[i].in, false) != rows[i].want)
			t_fail(__FILE__, (int)i, rows[i].in.p);
}

static void a_first_line_without_end_is_judged_as_http(void)
{
	static char line[SNIFF_LINE];

	memset(line, 'a', sizeof line);
	line[4] = ' ';
	CHECK(sniff((struct str){ line, sizeof line - 1 }, false) == SNIFF_MORE);
	CHECK(sniff((struct str){ line, sizeof line }, false) == SNIFF_HTTP);
	line[1] = '"'; /* no method has that */
	CHECK(sniff((struct str){ line, sizeof line - 1 }, false) == SNIFF_MORE);
	CHECK(sniff((struct str){ line, sizeof line }, false) == SNIFF_OTHER);
}

static void the_end_decides(void)
{
	static const struct str rows[] = { STR(""), STR("\x16"), STR("SSH"), STR("GET") };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(sniff(rows[i], true) == SNIFF_OTHER);
}

T_MAIN(T(first_bytes_tell), T(a_first_line_without_end_is_judged_as_http), T(the_end_decides))
