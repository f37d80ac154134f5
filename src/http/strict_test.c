/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RFC 9112 says a server must refuse, and every known way to hide a second request in a first
 * one: each row gets its status, the connection closes, and the hidden request is never started.
 */
#include "http/fixture.h"

#define HOST   "Host: a\r\n"
#define POST   "POST /echo HTTP/1.1\r\n" HOST
#define HIDDEN "GET /hello HTTP/1.1\r\n" HOST "\r\n"
#define TE     "Transfer-Encoding: chunked\r\n"

struct row {
	const char *text;
	int status;
};

static const struct row lines[] = {
	{ "\r\n" HIDDEN, 400 },
	{ " GET /hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET  /hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hello  HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hello HTTP/1.1 \r\n" HOST "\r\n", 400 },
	{ "GET\t/hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hel lo HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hello#f HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /h\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "G@T /hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hello\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\n" HOST "\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\nHost: a\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\rHost: a\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400 },
	{ "GET /hello HTTP/2.0\r\n" HOST "\r\n", 505 },
	{ "GET /hello HTTP/1.2\r\n" HOST "\r\n", 505 },
	{ "GET /hello http/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /hello HTTP/01.1\r\n" HOST "\r\n", 400 },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505 },
	{ "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n", 405 },
	{ "GET * HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET https://a/ HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET http://b/hello HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET http://u@a/hello HTTP/1.1\r\n" HOST "\r\n", 400 },
};

static const struct row headers[] = {
	{ "GET /hello HTTP/1.1\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST HOST "\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\nHost: a, b\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\nHost: a@b\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\nHost: a:99999\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A b: c\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n A: b\r\n" HOST "\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n", 400 },
	{ "GET /hello HTTP/1.1\r\n" HOST "\xc3: b\r\n\r\n", 400 },
	{ POST "Expect: 200-ok\r\n\r\n", 417 },
};

static const struct row framing[] = {
	{ POST "Content-Length: 3\r\n" TE "\r\nabc" HIDDEN, 400 },
	{ POST TE "Content-Length: 3\r\n\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 0, 0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: +0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: -1\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 0x0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 1 1\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: \r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length: 99999999999999999999\r\n\r\n" HIDDEN, 400 },
	{ POST "Content-Length : 0\r\n\r\n" HIDDEN, 400 },
	{ POST "Content_Length: 0\r\n\r\n" HIDDEN, 400 },
	{ POST "Transfer_Encoding: chunked\r\n\r\n" HIDDEN, 400 },
	{ POST "Transfer-Encoding : chunked\r\n\r\n" HIDDEN, 400 },
	{ POST "Transfer-Encoding: gzip, chunked\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding: chunked, identity\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding: identity\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding: xchunked\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding: \"chunked\"\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding:\x0b"
	       "chunked\r\n\r\n" HIDDEN,
	  400 },
	{ POST TE TE "\r\n0\r\n\r\n" HIDDEN, 501 },
	{ POST "Transfer-Encoding:\r\n chunked\r\n\r\n" HIDDEN, 400 },
	{ "POST /echo HTTP/1.0\r\n" TE "\r\n0\r\n\r\n" HIDDEN, 400 },
};

static const struct row chunks[] = {
	{ POST TE "\r\n-1\r\n" HIDDEN, 400 },
	{ POST TE "\r\n0x1\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n+1\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n 1\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1 \r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1\r\nab\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1\r\na\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1;a\nb\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n1_\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n10000000000000001\r\na\r\n0\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n0\r\nA b\r\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n0\r\n\n" HIDDEN, 400 },
	{ POST TE "\r\n0\r\nA: b\n\r\n" HIDDEN, 400 },
	{ POST TE "\r\n0\r\n folded\r\n\r\n" HIDDEN, 400 },
};

static void check_rows(const struct row *rows, size_t n)
{
	fix_begin();
	for (size_t i = 0; i < n; i++) {
		unsigned done = fix_ended[HTTP_END_DONE];
		int fd = fix_client();
		const char *text;
		bool closed;

		fix_send(fd, rows[i].text);
		text = fix_read(fd, &closed);
		if (fix_status(text) != rows[i].status || !closed)
			printf("# row %zu: %s -> %.20s\n", i, rows[i].text, text);
		CHECK(fix_status(text) == rows[i].status && closed);
		CHECK(strstr(text, "Connection: close\r\n") && !strstr(text + 9, "HTTP/1.1 2"));
		CHECK(fix_ended[HTTP_END_DONE] == done);
		close(fd);
		fix_turn();
	}
	fix_end();
}

static void bad_request_lines_are_refused(void)
{
	check_rows(lines, ARRAY_LEN(lines));
}

static void bad_headers_are_refused(void)
{
	check_rows(headers, ARRAY_LEN(headers));
}

static void ambiguous_framing_is_refused(void)
{
	check_rows(framing, ARRAY_LEN(framing));
}

static void bad_chunks_are_refused(void)
{
	check_rows(chunks, ARRAY_LEN(chunks));
}

static void a_nul_byte_is_refused(void)
{
	static const char text[] = "GET /hello HTTP/1.1\r\nHost: a\0b\r\n\r\n";
	int fd;

	fix_begin();
	fd = fix_client();
	CHECK(send(fd, text, sizeof text - 1, 0) == sizeof text - 1);
	fix_turn();
	CHECK(fix_status(fix_read(fd, NULL)) == 400);
	close(fd);
	fix_end();
}

static void too_many_headers_are_refused(void)
{
	static char text[16 * 1024];
	int n = snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\n" HOST);
	int fd;

	for (int i = 0; i < LIMIT_HTTP_HEADERS; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "A: b\r\n");
	(void)snprintf(text + n, sizeof text - (size_t)n, "\r\n");
	fix_begin();
	fd = fix_client();
	fix_send(fd, text);
	CHECK(fix_status(fix_read(fd, NULL)) == 431);
	close(fd);
	fix_end();
}

/* What a sloppy reader takes for two requests is one here. */
static void a_body_is_never_a_request(void)
{
	const char *text;
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, POST "Content-Length: 33\r\n\r\n" HIDDEN "1234");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 200 && fix_server.counters.requests == 1);
	CHECK_STR(fix_body(text), HIDDEN "1");
	CHECK(strlen(HIDDEN) == 32);
	close(fd);
	fix_end();
}

T_MAIN(T(bad_request_lines_are_refused), T(bad_headers_are_refused),
       T(ambiguous_framing_is_refused), T(bad_chunks_are_refused), T(a_nul_byte_is_refused),
       T(too_many_headers_are_refused), T(a_body_is_never_a_request))
