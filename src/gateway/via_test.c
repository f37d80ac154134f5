/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/via.h"

#include "t.h"

static void proxies_are_read(void)
{
	struct via v = { 0 };

	CHECK(via_parse(&v, STR("http://proxy.test:8080/")) == 0 && v.set && !v.socks);
	CHECK_STR(v.host.name, "proxy.test");
	CHECK(v.port == 8080 && !v.auth_len);
	CHECK(via_parse(&v, STR("http://me:p%40ss@10.0.0.1:3128")) == 0);
	CHECK(v.host.ip.len == 4);
	CHECK_STR(v.auth, "Basic bWU6cEBzcw==");
	CHECK(via_parse(&v, STR("socks5h://[::1]")) == 0 && v.socks && v.port == 1080);
	CHECK(!v.auth_len);
	CHECK(via_parse(&v, STR("socks5://me:p%40ss@proxy.test")) == 0);
	CHECK(v.auth_len == 9 && memcmp(v.auth, "\1\2me\4p@ss", 9) == 0);
}

static void the_longest_passwords_fit(void)
{
	struct via v = { 0 };
	char url[600];

	(void)snprintf(url, sizeof url, "socks5://%0255d:%0255d@h", 1, 2);
	CHECK(via_parse(&v, str_of(url)) == 0 && v.auth_len == 513);
	(void)snprintf(url, sizeof url, "http://%0255d:%0255d@h", 1, 2);
	CHECK(via_parse(&v, str_of(url)) == 0 && strlen(v.auth) == 690 && v.auth_len == 690);
}

static void what_is_no_proxy_is_refused(void)
{
	struct via v = { 0 };

	CHECK(via_parse(&v, STR("https://x:443")) < 0 && !v.set);
}

static void exceptions_are_honoured(void)
{
	struct via v = { .set = true, .no_proxy = "internal.test, .corp.example,*.lab.test" };

	CHECK(via_wanted(&v, "web.test") && !via_wanted(&v, NULL));
	CHECK(!via_wanted(&v, "internal.test") && !via_wanted(&v, "a.internal.test"));
	CHECK(via_wanted(&v, "notinternal.test"));
	CHECK(!via_wanted(&v, "x.corp.example") && !via_wanted(&v, "a.lab.test"));
	v.no_proxy = "*";
	CHECK(!via_wanted(&v, "web.test"));
	v.set = false;
	CHECK(!via_wanted(&v, "web.test"));
}

T_MAIN(T(proxies_are_read), T(the_longest_passwords_fit), T(what_is_no_proxy_is_refused),
       T(exceptions_are_honoured))
