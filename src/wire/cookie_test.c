/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cookie.h"

#include <errno.h>

#include "t.h"

static void cookies_are_found_by_their_whole_name(void)
{
	struct str v;

	CHECK(cookie_get(STR("a=1; b=2;c=\"3\"; d"), "b", &v) == 1 && str_is(v, "2"));
	CHECK(cookie_get(STR("a=1; b=2;c=\"3\"; d"), "c", &v) == 1 && str_is(v, "3"));
	CHECK(cookie_get(STR("a=1; d"), "d", &v) == 1 && v.n == 0);
	CHECK(cookie_get(STR("xa=1; ab=2; A=3"), "a", &v) == 0);
	CHECK(cookie_get(STR(""), "a", &v) == 0);
}

static void doubtful_cookies_are_refused(void)
{
	struct str v = STR("same");

	CHECK(cookie_get(STR("a=1; a=2"), "a", &v) == -EEXIST);
	CHECK(cookie_get(STR("a=1 2"), "a", &v) == -EBADMSG);
	CHECK(cookie_get(STR("a=\x80"), "a", &v) == -EBADMSG);
	CHECK(str_is(v, "same"));
}

static void set_cookie_is_safe(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(200);
	struct cookie c = { .name = "__Host-k",
			    .value = STR("v"),
			    .max_age_s = 60,
			    .secure = true,
			    .strict = true };

	CHECK(cookie_put(&b, &c) == 0);
	CHECK(str_is(buf_str(&b),
		     "__Host-k=v; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=60"));
	buf_clear(&b);
	c.value = STR("a; Domain=evil");
	CHECK(cookie_put(&b, &c) == -EINVAL && b.len == 0);
	c.value = STR("v");
	c.path = "/a;b";
	CHECK(cookie_put(&b, &c) == -EINVAL);
	c.path = "/a";
	c.name = "a b";
	CHECK(cookie_put(&b, &c) == -EINVAL);
}

T_MAIN(T(cookies_are_found_by_their_whole_name), T(doubtful_cookies_are_refused),
       T(set_cookie_is_safe))
