/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/url.h"

#include <errno.h>

#include "t.h"

static int decode(const char *text, unsigned flags, char *ret, size_t size)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);
	int r = url_decode(&b, str_of(text), flags);

	(void)snprintf(ret, size, "%s", b.data ? b.data : "");
	return r;
}

static void escapes_are_decoded_strictly(void)
{
	static const char *const bad[] = { "%", "%2", "%2g", "a%", "%00", "%2F", "%2f", "%%20" };
	char out[100];

	CHECK(decode("a%20b%C3%A9+", 0, out, sizeof out) == 0);
	CHECK_STR(out, "a b\xc3\xa9+");
	CHECK(decode("a+b%2B", URL_PLUS, out, sizeof out) == 0);
	CHECK_STR(out, "a b+");
	CHECK(decode("a%2Fb", URL_SLASH, out, sizeof out) == 0);
	CHECK_STR(out, "a/b");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(decode(bad[i], 0, out, sizeof out) == -EBADMSG);
		CHECK_STR(out, "");
	}
}

static void encoding_is_undone_by_decoding(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096), back = BUF_INIT(4096);
	char all[255];

	for (size_t i = 0; i < sizeof all; i++)
		all[i] = (char)(i + 1);
	CHECK(url_encode(&b, (struct str){ all, sizeof all }) == 0);
	CHECK(url_decode(&back, buf_str(&b), URL_SLASH | URL_PLUS) == 0);
	CHECK(str_eq(buf_str(&back), (struct str){ all, sizeof all }));
	buf_clear(&b);
	CHECK(url_encode(&b, STR("a-._~/ ")) == 0 && str_is(buf_str(&b), "a-._~%2F%20"));
}

static void paths_with_dots_or_tricks_are_refused(void)
{
	static const char *const good[] = { "/",      "/a/b",	    "/a//b/", "/.a",   "/...",
					    "/a%2Fb", "/%2e%2e%2e", "/a..b",  "/a%20b" };
	static const char *const bad[] = { "",	    "a",       "/.",	  "/..",    "/a/./b",
					   "/%2e/", "/.%2E/a", "/a\\b",	  "/a%5cb", "/a%00",
					   "/a%",   "/%zz",    "/a/%2e.", "/a/..%" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(url_path_check(str_of(good[i])) == 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(url_path_check(str_of(bad[i])) == -EBADMSG);
}

static void segments_come_one_by_one(void)
{
	static const char *const want[] = { "a", "", "b%2Fc", "" };
	struct str rest = STR("/a//b%2Fc/"), segment;
	size_t n = 0;

	while (url_segment_next(&rest, &segment)) {
		CHECK(n < ARRAY_LEN(want) && str_is(segment, want[n]));
		n++;
	}
	CHECK(n == ARRAY_LEN(want));
	rest = STR("/");
	CHECK(url_segment_next(&rest, &segment) && segment.n == 0);
	CHECK(!url_segment_next(&rest, &segment));
}

static void query_parameters_are_found(void)
{
	struct str q = STR("a=1&&state=running,paused&p%61th=%2Fx+y&empty=&flag&a%=2");
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	CHECK(url_query_get(STR("a=1&b=2"), "b", &b) == 1 && str_is(buf_str(&b), "2"));
	buf_clear(&b);
	CHECK(url_query_get(q, "a", &b) == -EBADMSG); /* "a%" is malformed */
	q.n -= 5;
	CHECK(url_query_get(q, "state", &b) == 1 && str_is(buf_str(&b), "running,paused"));
	buf_clear(&b);
	CHECK(url_query_get(q, "path", &b) == 1 && str_is(buf_str(&b), "/x y"));
	buf_clear(&b);
	CHECK(url_query_get(q, "empty", &b) == 1 && b.len == 0);
	CHECK(url_query_get(q, "flag", &b) == 1 && b.len == 0);
	CHECK(url_query_get(q, "pat", &b) == 0 && url_query_get(q, "paths", &b) == 0);
	CHECK(url_query_get(STR("a=1&%61=2"), "a", &b) == -EEXIST);
}

static void urls_of_clients_are_split(void)
{
	static const char *const bad[] = {
		"ftp://a/",	"http://", "http:///x",	  "http://u:p@a/", "http://a/#f",
		"http://a/ b",	"a",	   "http://a:0/", "http://a?q",	   "https://[::1/",
		"http://127.1/"
	};
	struct url u;

	CHECK(url_parse(STR("https://A.test/p?q=1"), &u) == 0);
	CHECK(u.tls && u.port == 443 && str_is(u.target, "/p?q=1"));
	CHECK_STR(u.host.name, "a.test");
	CHECK(url_parse(STR("HTTP://[::1]:81"), &u) == 0);
	CHECK(!u.tls && u.port == 81 && u.host.ip.len == 16 && str_is(u.target, "/"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(url_parse(str_of(bad[i]), &u) == -EBADMSG);
}

T_MAIN(T(escapes_are_decoded_strictly), T(encoding_is_undone_by_decoding),
       T(paths_with_dots_or_tricks_are_refused), T(segments_come_one_by_one),
       T(query_parameters_are_found), T(urls_of_clients_are_split))
