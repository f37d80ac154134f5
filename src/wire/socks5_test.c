/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks5.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

static void greetings_are_parsed(void)
{
	bool ok = false;

	CHECK(socks_greeting_parse(STR("\5\2\0\2rest"), &ok) == 4 && ok);
	CHECK(socks_greeting_parse(STR("\5\1\2"), &ok) == 3 && !ok);
	CHECK(socks_greeting_parse(STR("\5\2\0"), &ok) == 0);
	CHECK(socks_greeting_parse(STR("\5"), &ok) == 0);
	CHECK(socks_greeting_parse(STR(""), &ok) == 0);
	CHECK(socks_greeting_parse(STR("\4\1\0"), &ok) == -EBADMSG);
	CHECK(socks_greeting_parse(STR("\5\0"), &ok) == -EBADMSG);
}

static void requests_name_hosts_and_addresses(void)
{
	static const struct {
		struct str in;
		const char *host;
		unsigned port;
	} rows[] = {
		{ STR("\5\1\0\1\x0a\1\2\3\1\xbb"), "10.1.2.3", 443 },
		{ STR("\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"), "2001:db8::1", 80 },
		{ STR("\5\1\0\3\x0b"
		      "Example.COM\0\x50"),
		  "example.com", 80 },
		{ STR("\5\1\0\3\x08"
		      "10.1.2.3\0\x50"),
		  "10.1.2.3", 80 },
		{ STR("\5\1\0\3\3::1\0\x50"), "::1", 80 },
	};
	struct socks_request q;
	enum socks_rep rep;
	char text[HOST_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(socks_request_parse(rows[i].in, &q, &rep) == (int64_t)rows[i].in.n);
		host_text(&q.host, text);
		CHECK_STR(text, rows[i].host);
		CHECK(q.port == rows[i].port && rep == SOCKS_OK);
		for (size_t n = 0; n < rows[i].in.n; n++)
			CHECK(socks_request_parse((struct str){ rows[i].in.p, n }, &q, &rep) == 0);
	}
}

static void everything_else_is_refused_with_its_code(void)
{
	static const struct {
		struct str in;
		enum socks_rep rep;
	} rows[] = {
		{ STR("\4\1\0\1"), SOCKS_FAILED },
		{ STR("\5\1\1\1"), SOCKS_FAILED },
		{ STR("\5\2\0\1\1\2\3\4\0\1"), SOCKS_NO_COMMAND }, /* BIND */
		{ STR("\5\3\0\1\1\2\3\4\0\1"), SOCKS_NO_COMMAND }, /* UDP */
		{ STR("\5\1\0\2\1\2\3\4\0\1"), SOCKS_NO_ADDRESS },
		{ STR("\5\1\0\3\0\0\x50"), SOCKS_NO_ADDRESS },
		{ STR("\5\1\0\1\1\2\3\4\0\0"), SOCKS_NO_ADDRESS },
		{ STR("\5\1\0\3\x10"
		      "evil.com\0.ok.com\0\x50"),
		  SOCKS_NO_ADDRESS },
		{ STR("\5\1\0\3\5"
		      "127.1\0\x50"),
		  SOCKS_NO_ADDRESS },
		{ STR("\5\1\0\3\6"
		      "a b.cd\0\x50"),
		  SOCKS_NO_ADDRESS },
	};
	struct socks_request q;
	enum socks_rep rep;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(socks_request_parse(rows[i].in, &q, &rep) == -EBADMSG);
		CHECK(rep == rows[i].rep);
	}
}

static void answers_are_written(void)
{
	uint8_t out[SOCKS_REPLY], two[SOCKS_METHOD_REPLY];
	struct ip v6 = { .len = 16 };

	CHECK(socks_reply(SOCKS_OK, NULL, 0, out) == 10);
	CHECK(memcmp(out, "\5\0\0\1\0\0\0\0\0\0", 10) == 0);
	CHECK(socks_reply(SOCKS_NOT_ALLOWED, &v6, 443, out) == 22 && out[1] == 2 && out[3] == 4);
	socks_method_reply(true, two);
	CHECK(two[0] == 5 && two[1] == 0);
	socks_method_reply(false, two);
	CHECK(two[1] == 0xff);
}

T_MAIN(T(greetings_are_parsed), T(requests_name_hosts_and_addresses),
       T(everything_else_is_refused_with_its_code), T(answers_are_written))
