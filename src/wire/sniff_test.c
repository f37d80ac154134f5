/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sniff.h"

#include "base/cleanup.h"
#include "t.h"

struct row {
	struct str in;
	enum sniff want;
};

static void judge(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sniff(rows[i].in, false) != rows[i].want)
			t_fail(__FILE__, (int)i, rows[i].in.p);
}

static void first_bytes_tell(void)
{
	static const struct row rows[] = {
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
		{ STR("\x80\x2e\1"), SNIFF_OTHER },
		{ STR("\x16\2"), SNIFF_OTHER },
		{ STR("\0\0\0\x08"), SNIFF_OTHER },
		{ STR("EHLO me\r\n"), SNIFF_OTHER },
		{ STR("USER anonymous\r\n"), SNIFF_OTHER },
		{ STR("a001 LOGIN x y\r\n"), SNIFF_OTHER },
		{ STR("*1\r\n$4\r\nPING\r\n"), SNIFF_OTHER },
		{ STR("get key\r\n"), SNIFF_OTHER },
		{ STR("QUIT\r\n"), SNIFF_OTHER },
		{ STR("\0\0\0\x52\0\3\0\0user\0me\0"), SNIFF_OTHER },
		{ STR("EHLO me"), SNIFF_MORE },
		{ STR("GET"), SNIFF_LIKELY },
		{ STR("SSH"), SNIFF_LIKELY },
		{ STR("P"), SNIFF_LIKELY },
		{ STR("echoed"), SNIFF_MORE },
		{ STR("AMQP\0\0\x09\1"), SNIFF_OTHER },
		{ STR("0032git-upload-pack /p\0host=x\0"), SNIFF_MORE },
		{ STR("\x16"), SNIFF_LIKELY },
		{ STR(""), SNIFF_MORE },
		{ STR("{\"a\":1}"), SNIFF_MORE },
	};

	judge(rows, ARRAY_LEN(rows));
}

static void what_a_lenient_server_takes_for_a_request_is_one(void)
{
	static const struct row rows[] = {
		{ STR("SSH-2.0-x"), SNIFF_LIKELY },
		{ STR("SSH-2.0-x\r\n"), SNIFF_GREETING },
		{ STR("SSH-2.0-x\r\n\0\0\1"), SNIFF_SSH },
		{ STR("SSH-2.0-x\r\nGET / "), SNIFF_HTTP },
		{ STR("SSH-2.0-x\r\nFOO / HTTP/1.1"), SNIFF_HTTP },
		{ STR("SSH-2.0-x\r\nG"), SNIFF_LIKELY },
		{ STR("SSH-2.0-x\r\nnoise\n"), SNIFF_OTHER },
		{ STR("SSH-2.0 / HTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR("PROXY TCP4 1.2.3.4"), SNIFF_HTTP },
		{ STR("PROXY UNKNOWN\r\n"), SNIFF_HTTP },
		{ STR(" GET / "), SNIFF_HTTP },
		{ STR("\t \x0bGET\x0c/"), SNIFF_HTTP },
		{ STR("GET\x0b/"), SNIFF_HTTP },
		{ STR("GET\x1c/\x1fHTTP/1.1"), SNIFF_HTTP },
		{ STR("GET\x85/"), SNIFF_HTTP },
		{ STR("GET\xa0/"), SNIFF_HTTP },
		{ STR("\xa0\x85\x1dGET\r/"), SNIFF_HTTP },
		{ STR("FOO\x1e/\x7fHTTP/1.1"), SNIFF_HTTP },
		{ STR("foo / http/1.1"), SNIFF_HTTP },
		{ STR("one\rFOO / HTTP/1.1"), SNIFF_HTTP },
		{ STR(" \x85"), SNIFF_MORE },
		{ STR(" FOO /x\n"), SNIFF_OTHER },
		{ STR("GET\r"), SNIFF_LIKELY },
		{ STR("GET\r\n"), SNIFF_OTHER },
		{ STR("\x20\0\0\1\x85"), SNIFF_OTHER },
		{ STR("GET /\0 HTTP/1.1"), SNIFF_HTTP },
	};

	judge(rows, ARRAY_LEN(rows));
}

static void a_first_line_without_end_is_judged_as_http(void)
{
	static char line[SNIFF_LINE];

	memset(line, 'a', sizeof line);
	line[4] = ' ';
	CHECK(sniff((struct str){ line, sizeof line - 1 }, false) == SNIFF_MORE);
	CHECK(sniff((struct str){ line, sizeof line }, false) == SNIFF_HTTP);
	line[1] = '"'; /* not allowed in a method */
	CHECK(sniff((struct str){ line, sizeof line - 1 }, false) == SNIFF_MORE);
	CHECK(sniff((struct str){ line, sizeof line }, false) == SNIFF_OTHER);
}

static void the_end_decides(void)
{
	static const struct str rows[] = { STR(""), STR("\x16"), STR("SSH"), STR("GET") };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(sniff(rows[i], true) == SNIFF_OTHER);
}

T_MAIN(T(first_bytes_tell), T(what_a_lenient_server_takes_for_a_request_is_one),
       T(a_first_line_without_end_is_judged_as_http), T(the_end_decides))
