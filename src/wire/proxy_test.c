/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proxy.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

static void proxies_are_parsed(void)
{
	struct proxy p;

	CHECK(proxy_parse(STR("http://proxy.test:8080/"), &p) == 0 && !p.socks && p.port == 8080);
	CHECK_STR(p.host.name, "proxy.test");
	CHECK(p.userinfo.n == 0);
	CHECK(proxy_parse(STR("http://me:p%40ss@10.0.0.1:3129"), &p) == 0 && p.port == 3129);
	CHECK(p.host.ip.len == 4 && str_is(p.userinfo, "me:p%40ss"));
	CHECK(proxy_parse(STR("socks5h://[::1]"), &p) == 0 && p.socks && p.port == 1080);
	CHECK(proxy_parse(STR("socks5://proxy.test:9"), &p) == 0 && p.socks && p.port == 9);
	CHECK(proxy_parse(STR("proxy.test"), &p) == 0 && p.port == 3128);
}

static void an_invalid_proxy_is_refused_without_output(void)
{
	static const char *const bad[] = { "",
					   "http://",
					   "https://x y",
					   "https://x:443",
					   "http://a:b:c",
					   "http://h:99999",
					   "socks4://h:1080",
					   "socks5://:p@h",
					   "http://@h" };
	struct proxy p = { .port = 7 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(proxy_parse(str_of(bad[i]), &p) < 0 && p.port == 7);
}

static void passwords_are_decoded(void)
{
	auto_done(buf_done) struct buf user = BUF_INIT(PROXY_PASSWORD_MOST);
	auto_done(buf_done) struct buf password = BUF_INIT(PROXY_PASSWORD_MOST);
	struct proxy p;

	CHECK(proxy_parse(STR("socks5://m%65:a:b%40%zz%4@h"), &p) == 0 && p.socks);
	CHECK(proxy_userinfo(p.userinfo, &user, &password) == 0);
	CHECK_STR(user.data, "me");
	CHECK_STR(password.data, "a:b@%zz%4");
}

static void passwords_have_a_limit(void)
{
	char url[600];
	struct proxy p;

	for (int n = PROXY_PASSWORD_MOST; n <= PROXY_PASSWORD_MOST + 1; n++) {
		int want = n > PROXY_PASSWORD_MOST ? -EINVAL : 0;

		(void)snprintf(url, sizeof url, "socks5://u:%0*d@h", n, 7);
		CHECK(proxy_parse(str_of(url), &p) == want);
		(void)snprintf(url, sizeof url, "http://%0*d:p@h", n, 7);
		CHECK(proxy_parse(str_of(url), &p) == want);
	}
}

T_MAIN(T(proxies_are_parsed), T(passwords_are_decoded), T(passwords_have_a_limit),
       T(an_invalid_proxy_is_refused_without_output))
