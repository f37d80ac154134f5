/* SPDX-License-Identifier: Apache-2.0 */
#include "api/names.h"

#include <errno.h>

#include "t.h"

static struct known_names names;

/* The head of a request with these lines. */
static const struct http_head *head_of(const char *lines)
{
	static struct http_head h;
	static char text[2048];

	(void)snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", lines);
	CHECK(http_request_parse(str_of(text), &h) > 0);
	return &h;
}

static bool knows(const char *host, bool is_port)
{
	char line[300];

	(void)snprintf(line, sizeof line, "Host: %s\r\n", host);
	return names_know_host(&names, head_of(line), is_port);
}

static void a_page_of_another_name_is_not_let_in(void)
{
	static const char *const good[] = { "127.0.0.1:3000", "[::1]:3000", "localhost",
					    "localhost:3000", "LOCALHOST",  "sandbox.localhost",
					    "192.0.2.1" };
	static const char *const bad[] = { "evil.test", "localhost.evil.test", "evillocalhost",
					   "127.0.0.1.evil.test" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(knows(good[i], false));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!knows(bad[i], false));
	CHECK(knows("8000-aaaaaaaaaaaa.any.test", true)); /* no domain is configured */
	CHECK(names_add_domain(&names, STR("Own.test")) == 0);
	CHECK(knows("own.test", false) && knows("api.own.test:81", false));
	CHECK(!knows("notown.test", false) && !knows("8000-aaaaaaaaaaaa.any.test", true));
	CHECK(knows("8000-aaaaaaaaaaaa.own.test", true));
	CHECK(names_add_domain(&names, STR("a b")) == -EINVAL);
	CHECK(names_add_domain(&names, STR("1.2.3.4")) == -EINVAL);
	while (names.ndomains < NAMES_MOST)
		CHECK(names_add_domain(&names, STR("x.test")) == 0);
	CHECK(names_add_domain(&names, STR("x.test")) == -ENOSPC);
}

static bool may(const char *lines, bool tls)
{
	return names_know_origin(&names, head_of(lines), tls);
}

static void origins_are_ours_or_allowed(void)
{
	names = (struct known_names){ 0 };
	CHECK(may("Host: a.test\r\n", false));
	CHECK(may("Host: a.test\r\nOrigin: http://a.test\r\n", false));
	CHECK(may("Host: a.test:3000\r\nOrigin: http://a.test:3000\r\n", false));
	CHECK(may("Host: a.test\r\nOrigin: https://a.test\r\n", true));
	CHECK(may("Host: a.test\r\nOrigin: https://a.test\r\n", false)); /* behind a proxy */
	CHECK(!may("Host: a.test\r\nOrigin: http://a.test\r\n", true));
	CHECK(!may("Host: a.test\r\nOrigin: http://b.test\r\n", false));
	CHECK(!may("Host: a.test:3000\r\nOrigin: http://a.test:3001\r\n", false));
	CHECK(!may("Host: a.test\r\nOrigin: null\r\n", false));
	CHECK(!may("Host: a.test\r\nOrigin: http://a.test\r\nOrigin: http://b.test\r\n", false));
	CHECK(names_add_origin(&names, STR("http://b.test")) == 0);
	CHECK(may("Host: a.test\r\nOrigin: http://b.test\r\n", false));
	CHECK(!may("Host: a.test\r\nOrigin: http://b.test:81\r\n", false));
	CHECK(names_add_origin(&names, STR("b.test")) == -EINVAL);
}

T_MAIN(T(a_page_of_another_name_is_not_let_in), T(origins_are_ours_or_allowed))
