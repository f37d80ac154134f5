/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "t.h"

static int server;

/* A client whose server has said `text` already; the socket's buffer holds it. */
static void open_until(struct http_client *c, const char *text, bool end, uint64_t ms)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(io_write_all(fds[1], text, strlen(text)) == 0);
	if (end)
		CHECK(shutdown(fds[1], SHUT_WR) == 0);
	server = fds[1];
	CHECK(http_client_init(c, fds[0], NULL, clock_mono_ns() + ms * NS_PER_MS) == 0);
}

static void open_client(struct http_client *c, const char *text, bool end)
{
	open_until(c, text, end, 30000);
}

static int ask(struct http_client *c, const char *method, struct str body)
{
	struct http_client_header h = { "X-A", STR("b") };

	return http_client_ask(c, str_of(method), STR("h.test"), STR("/p?q"), &h, 1, body);
}

static void answers_are_read_and_the_connection_used_again(void)
{
	auto_done(http_client_done) struct http_client c;
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	char sent[512] = "";
	char byte;

	open_client(&c,
		    "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
		    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
		    "2\r\nde\r\n0\r\n\r\n",
		    false);
	CHECK(ask(&c, "GET", STR("")) == 0 && c.head.status == 200);
	CHECK(http_client_read_all(&c, &b) == 0 && str_is(buf_str(&b), "hello"));
	CHECK(recv(server, sent, sizeof sent - 1, 0) > 0);
	CHECK_STR(sent, "GET /p?q HTTP/1.1\r\nHost: h.test\r\nAccept-Encoding: identity\r\n"
			"X-A: b\r\n\r\n");
	CHECK(ask(&c, "POST", STR("body")) == 0);
	while (http_client_read(&c, &byte, 1) == 1)
		CHECK(buf_add(&b, &byte, 1) == 0);
	CHECK(str_is(buf_str(&b), "helloabcde") && http_client_is_reusable(&c));
	memset(sent, 0, sizeof sent);
	CHECK(recv(server, sent, sizeof sent - 1, 0) > 0);
	CHECK(strstr(sent, "Content-Length: 4\r\n\r\nbody"));
}

static void an_answer_until_the_end_is_not_reusable(void)
{
	auto_done(http_client_done) struct http_client c;
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	open_client(&c, "HTTP/1.1 200 OK\r\n\r\nabc", true);
	CHECK(ask(&c, "GET", STR("")) == 0);
	CHECK(http_client_read_all(&c, &b) == 0 && str_is(buf_str(&b), "abc"));
	CHECK(!http_client_is_reusable(&c));
}

static void a_cut_answer_is_an_error(void)
{
	auto_done(http_client_done) struct http_client c;
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	open_client(&c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true);
	CHECK(ask(&c, "GET", STR("")) == 0);
	CHECK(http_client_read_all(&c, &b) == -EBADMSG);
}

static void too_much_and_too_late_are_errors(void)
{
	auto_done(http_client_done) struct http_client c;
	auto_done(buf_done) struct buf b = BUF_INIT(3);
	struct http_client late;

	open_client(&c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false);
	CHECK(ask(&c, "GET", STR("")) == 0 && http_client_read_all(&c, &b) == -E2BIG);
	CHECK(ask(&c, "GET", STR("")) == -EBUSY);
	open_until(&late, "", false, 50);
	CHECK(ask(&late, "GET", STR("")) == -ETIMEDOUT);
	http_client_done(&late);
}

static void malformed_answers_are_errors(void)
{
	static const char *const bad[] = {
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 200 OK\nA: b\n\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_done(http_client_done) struct http_client c;

		open_client(&c, bad[i], false);
		CHECK(ask(&c, "GET", STR("")) == -EBADMSG);
	}
}

T_MAIN(T(answers_are_read_and_the_connection_used_again),
       T(an_answer_until_the_end_is_not_reusable), T(a_cut_answer_is_an_error),
       T(too_much_and_too_late_are_errors), T(malformed_answers_are_errors))
