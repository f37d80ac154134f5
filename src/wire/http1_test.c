/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

static struct http_head h;

static void a_request_is_parsed(void)
{
	static const struct str in = STR("POST /a/b?x=1 HTTP/1.1\r\nHost: Example.com:8080\r\n"
					 "Content-Length: 5 \r\nX-Empty:\r\n\r\nhello");

	CHECK(http_request_parse(in, &h) == (int64_t)in.n - 5);
	CHECK(str_is(h.method, "POST") && str_is(h.path, "/a/b") && str_is(h.query, "x=1"));
	CHECK(h.form == HTTP_ORIGIN && h.minor == 1 && h.keep_alive && h.n == 3);
	CHECK_STR(h.host.name, "example.com");
	CHECK(h.port == 8080 && h.framing == HTTP_BODY_LENGTH && h.length == 5);
	CHECK(http_header(&h, "x-empty") && http_header(&h, "x-empty")->n == 0);
	CHECK(http_header(&h, "x-none") == NULL);
}

static void every_prefix_needs_more_input(void)
{
	static const struct str in = STR("GET / HTTP/1.1\r\nHost: a.b\r\n\r\n");

	for (size_t n = 0; n < in.n; n++)
		CHECK(http_request_parse((struct str){ in.p, n }, &h) == 0);
	CHECK(http_request_parse(in, &h) == (int64_t)in.n);
}

struct row {
	struct str in;
	int64_t want; /* 0: all of it */
};

static void judge(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t r = http_request_parse(rows[i].in, &h);

		if (r != (rows[i].want ? rows[i].want : (int64_t)rows[i].in.n))
			t_fail_str(__FILE__, (int)i, rows[i].in.p, h.why ? h.why : "taken");
		CHECK(r >= 0 || h.why);
	}
}

#define REQ(line, rest) STR(line "\r\nHost: a.b\r\n" rest "\r\n")

static void request_lines(void)
{
	static const struct row rows[] = {
		{ REQ("GET / HTTP/1.1", ""), 0 },
		{ REQ("GET / HTTP/1.0", ""), 0 },
		{ REQ("OPTIONS * HTTP/1.1", ""), 0 },
		{ REQ("GET http://a.b/x HTTP/1.1", ""), 0 },
		{ REQ("GET HTTP://A.B:80/x HTTP/1.1", ""), 0 },
		{ REQ("GET http://a.b?q HTTP/1.1", ""), 0 },
		{ REQ("CONNECT a.b:443 HTTP/1.1", ""), 0 },
		{ REQ("GET / HTTP/2.0", ""), -EPROTO },
		{ REQ("GET / HTTP/1.2", ""), -EPROTO },
		{ REQ("GET / HTTP/0.9", ""), -EPROTO },
		{ REQ("GET / HTTP/11", ""), -EBADMSG },
		{ REQ("GET / http/1.1", ""), -EBADMSG },
		{ REQ("GET / HTTP/1.1 ", ""), -EBADMSG },
		{ REQ("GET  / HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /  HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET\t/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /", ""), -EBADMSG },
		{ REQ("GET", ""), -EBADMSG },
		{ REQ(" GET / HTTP/1.1", ""), -EBADMSG },
		{ REQ("G(T / HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /a b HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /a\x01 HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /\xc3\xa9 HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET /a#b HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET a HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET * HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET https://a.b/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET http://u@a.b/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET http:///x HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET http://c.d/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("GET http://a.b:81/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("CONNECT a.b HTTP/1.1", ""), -EBADMSG },
		{ REQ("CONNECT c.d:443 HTTP/1.1", ""), -EBADMSG },
		{ REQ("CONNECT http://a.b:443/ HTTP/1.1", ""), -EBADMSG },
		{ REQ("CONNECT u@a.b:443 HTTP/1.1", ""), -EBADMSG },
		{ REQ("CONNECT a.b:443 HTTP/1.1", "Content-Length: 0\r\n"), -EBADMSG },
		{ REQ("CONNECT /x HTTP/1.1", ""), -EBADMSG },
		{ STR("\r\nGET / HTTP/1.1\r\nHost: a.b\r\n\r\n"), -EBADMSG },
	};

	judge(rows, ARRAY_LEN(rows));
}

static void headers(void)
{
	static const struct row rows[] = {
		{ STR("GET / HTTP/1.0\r\n\r\n"), 0 },
		{ STR("GET / HTTP/1.1\r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: \r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: a.b, c.d\r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: u@a.b\r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: a.b/\r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 0 },
		{ REQ("GET / HTTP/1.1", "Host: a.b\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "host: c.d\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X : 1\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X\t: 1\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", " X: 1\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: 1\r\n 2\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: 1\r\n\t2\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", ": 1\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\0b\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\x0b"
					"b\r\n"),
		  -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\x7f\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: \xe9\t ok\r\n"), 0 },
		{ REQ("GET / HTTP/1.1", "X\x80: 1\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\rb\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\nY: b\r\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "X: a\r\r\n"), -EBADMSG },
		{ STR("GET / HTTP/1.1\nHost: a.b\n\n"), -EBADMSG },
		{ REQ("GET / HTTP/1.1", "Expect: 100-continue\r\n"), 0 },
		{ REQ("GET / HTTP/1.1", "Expect: 200-ok\r\n"), -ENOMSG },
	};

	judge(rows, ARRAY_LEN(rows));
}

static void framing(void)
{
	static const struct row rows[] = {
		{ REQ("POST / HTTP/1.1", "Content-Length: 0\r\n"), 0 },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: Chunked\r\n"), 0 },
		{ REQ("POST / HTTP/1.1", "Content-Length: 999999999999999999\r\n"), 0 },
		{ REQ("POST / HTTP/1.1", "Content-Length: 9999999999999999999\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: 5\r\nContent-Length: 5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: 5, 5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: +5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: -5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: 0x5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: 5 5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length:\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content_Length: 5\r\n"), -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
		  -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
		  -EBADMSG },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n"), -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked\r\n"), -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: xchunked\r\n"), -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: identity\r\n"), -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding:\r\n"), -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.1", "Transfer-Encoding: \x0b"
					 "chunked\r\n"),
		  -EBADMSG },
		{ REQ("POST / HTTP/1.1",
		      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
		  -EOPNOTSUPP },
		{ REQ("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n"), -EBADMSG },
	};

	judge(rows, ARRAY_LEN(rows));
}

static void keep_alive_follows_the_headers(void)
{
	static const struct {
		struct str in;
		bool keep, upgrade, websocket;
	} rows[] = {
		{ REQ("GET / HTTP/1.1", ""), true, false, false },
		{ REQ("GET / HTTP/1.1", "Connection: foo, Close\r\n"), false, false, false },
		{ REQ("GET / HTTP/1.0", ""), false, false, false },
		{ REQ("GET / HTTP/1.0", "Connection: keep-alive\r\n"), true, false, false },
		{ REQ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), true,
		  true, true },
		{ REQ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n"), true, true,
		  false },
		{ REQ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"), true,
		  true, false },
		{ REQ("GET / HTTP/1.1", "Upgrade: websocket\r\n"), true, false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(http_request_parse(rows[i].in, &h) > 0);
		CHECK(h.keep_alive == rows[i].keep && h.upgrade == rows[i].upgrade);
		CHECK(h.websocket == rows[i].websocket);
	}
}

/* Parse a request whose head has n bytes. */
static int64_t parse_of_size(size_t n)
{
	static const char end[] = { '\r', '\n', '\r', '\n' };
	char *in = malloc(n);
	int at = snprintf(in, n, "GET / HTTP/1.1\r\nHost: a.b\r\nX: ");
	int64_t r;

	memset(in + at, 'x', n - (size_t)at);
	memcpy(in + n - sizeof end, end, sizeof end);
	r = http_request_parse((struct str){ in, n }, &h);
	free(in);
	return r;
}

static int64_t parse_with_headers(size_t n)
{
	char in[8192];
	int at = snprintf(in, sizeof in, "GET / HTTP/1.1\r\nHost: a.b\r\n");

	for (size_t i = 1; i < n; i++)
		at += snprintf(in + at, sizeof in - (size_t)at, "X: %zu\r\n", i);
	at += snprintf(in + at, sizeof in - (size_t)at, "\r\n");
	return http_request_parse((struct str){ in, (size_t)at }, &h);
}

static void the_limit_passes_and_one_past_it_is_refused(void)
{
	CHECK(parse_of_size(LIMIT_HTTP_HEAD) == LIMIT_HTTP_HEAD);
	CHECK(parse_of_size(LIMIT_HTTP_HEAD + 1) == -E2BIG);
	CHECK(parse_with_headers(LIMIT_HTTP_HEADERS) > 0);
	CHECK(parse_with_headers(LIMIT_HTTP_HEADERS + 1) == -E2BIG);
	CHECK(http_error_status(-E2BIG) == 431 && http_error_status(-EBADMSG) == 400);
}

static void responses(void)
{
	static const struct {
		struct str in, method;
		int64_t want;
		int status;
		enum http_framing framing;
	} rows[] = {
		{ STR("HTTP/1.1 200 OK\r\n\r\n"), STR("GET"), 0, 200, HTTP_BODY_CLOSE },
		{ STR("HTTP/1.1 200\r\n\r\n"), STR("GET"), 0, 200, HTTP_BODY_CLOSE },
		{ STR("HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\n"), STR("GET"), 0, 200,
		  HTTP_BODY_LENGTH },
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), STR("HEAD"), 0, 200,
		  HTTP_BODY_NONE },
		{ STR("HTTP/1.1 204 No\r\n\r\n"), STR("GET"), 0, 204, HTTP_BODY_NONE },
		{ STR("HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n"), STR("GET"), 0, 304,
		  HTTP_BODY_NONE },
		{ STR("HTTP/1.1 101 Up\r\n\r\n"), STR("GET"), 0, 101, HTTP_BODY_NONE },
		{ STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), STR("GET"), 0, 200,
		  HTTP_BODY_CHUNKED },
		{ STR("HTTP/1.1 200 OK\r\n\r\n"), STR("CONNECT"), 0, 200, HTTP_BODY_NONE },
		{ STR("HTTP/1.1 2000 OK\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/1.1 20 OK\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/1.1 099 OK\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/1.1  200 OK\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/2.0 200 OK\r\n\r\n"), STR("GET"), -EPROTO, 0, 0 },
		{ STR("ICY 200 OK\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/1.1 200 O\x01K\r\n\r\n"), STR("GET"), -EBADMSG, 0, 0 },
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
		  STR("GET"), -EBADMSG, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t r = http_response_parse(rows[i].in, rows[i].method, &h);

		if (r != (rows[i].want ? rows[i].want : (int64_t)rows[i].in.n))
			t_fail_str(__FILE__, (int)i, rows[i].in.p, h.why ? h.why : "taken");
		if (r > 0)
			CHECK(h.status == rows[i].status && h.framing == rows[i].framing);
	}
	CHECK(http_response_parse(STR("HTTP/1.1 200 OK\r\n\r\n"), STR("GET"), &h) > 0 &&
	      !h.keep_alive);
}

T_MAIN(T(a_request_is_parsed), T(every_prefix_needs_more_input), T(request_lines), T(headers),
       T(framing), T(keep_alive_follows_the_headers),
       T(the_limit_passes_and_one_past_it_is_refused), T(responses))
