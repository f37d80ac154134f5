/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks5_client.h"

#include <errno.h>

#include "t.h"

static bool is_bytes(const uint8_t *got, size_t n, struct str want)
{
	return n == want.n && memcmp(got, want.p, n) == 0;
}

static void requests_follow_the_rfcs(void)
{
	uint8_t out[SOCKS_PASSWORD] = { 0 };

	CHECK(is_bytes(out, socks_hello(false, out), STR("\5\1\0")));
	CHECK(is_bytes(out, socks_hello(true, out), STR("\5\2\0\2")));
	CHECK(is_bytes(out, socks_password(STR("me"), STR("secret"), out), STR("\1\2me\6secret")));
	CHECK(is_bytes(out, socks_password(STR("me"), STR_NONE, out), STR("\1\2me\0")));
	CHECK(is_bytes(out, socks_ask("web.test", 443, out), STR("\5\1\0\3\10web.test\1\xbb")));
}

static void passwords_have_a_limit(void)
{
	static char text[SOCKS_PASSWORD_MOST + 1];
	struct str most = { text, SOCKS_PASSWORD_MOST }, more = { text, sizeof text };
	uint8_t out[SOCKS_PASSWORD] = { 0 };

	CHECK(socks_password(most, most, out) == SOCKS_PASSWORD);
	CHECK(socks_password(more, most, out) == 0 && socks_password(most, more, out) == 0);
	CHECK(socks_password(STR_NONE, most, out) == 0);
}

static void answers_are_parsed_byte_by_byte(void)
{
	static const struct str name = STR("\5\0\0\3\7bound.x\0\1");
	bool password = false;

	CHECK(socks_hello_answer(STR("\5"), &password) == 0);
	CHECK(socks_hello_answer(STR("\5\2+"), &password) == 2 && password);
	CHECK(socks_hello_answer(STR("\5\0"), &password) == 2 && !password);
	CHECK(socks_password_answer(STR("\1")) == 0 && socks_password_answer(STR("\1\0")) == 2);
	for (size_t n = 0; n < name.n; n++)
		CHECK(socks_ask_answer((struct str){ name.p, n }) == 0);
	CHECK(socks_ask_answer(name) == (int64_t)name.n);
	CHECK(socks_ask_answer(STR("\5\0\0\1\1\2\3\4\0\1++")) == 10);
	CHECK(socks_ask_answer(STR("\5\0\0\4\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\0\1")) == 22);
}

static void refusals_are_distinguished(void)
{
	bool password;

	CHECK(socks_hello_answer(STR("\5\xff"), &password) == -EACCES);
	CHECK(socks_hello_answer(STR("\5\1"), &password) == -EBADMSG);
	CHECK(socks_hello_answer(STR("HTTP"), &password) == -EBADMSG);
	CHECK(socks_password_answer(STR("\1\1")) == -EACCES);
	CHECK(socks_ask_answer(STR("\5\2\0\1\0")) == -ECONNREFUSED);
	CHECK(socks_ask_answer(STR("\5\0\0\2\0")) == -EBADMSG);
	CHECK(socks_ask_answer(STR("\4\0\0\1\0")) == -EBADMSG);
}

T_MAIN(T(requests_follow_the_rfcs), T(passwords_have_a_limit), T(answers_are_parsed_byte_by_byte),
       T(refusals_are_distinguished))
