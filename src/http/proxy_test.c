/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy.h"

#include "http/fixture.h"

#define HOST "Host: a.test:81\r\n"

static int server = FD_NONE, returned = FD_NONE;
static unsigned proxies_ended, failures;
static bool use_failed;

static void on_ended(void *user, int fd)
{
	(void)user;
	proxies_ended++;
	returned = fd;
}

static void on_failed(struct http_request *r, void *user, int status)
{
	(void)user;
	failures++;
	http_answer(r, status, "application/json", STR("{}"));
}

/* Send a request through the proxy; `server` is the other end. */
static int ask(const char *text, const struct http_proxy_options *options)
{
	struct http_proxy_options o = options ? *options : (struct http_proxy_options){ 0 };
	int fds[2], fd = fix_client();

	o.ended = on_ended;
	o.failed = use_failed ? on_failed : NULL;
	fix_send(fd, text);
	CHECK(fix_request);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(io_set_nonblock(fds[0], true) == 0);
	server = fds[0];
	CHECK(http_proxy_start(fix_request, fds[1], &o) == 0);
	fix_turn();
	return fd;
}

static void hop_by_hop_headers_stay_behind(void)
{
	static const char *const remove[] = { "x-token", NULL };
	struct http_proxy_options o = { .remove = remove, .forwarded_proto = "http" };
	const char *text;
	bool closed;
	int fd;

	fix_begin();
	fd = ask("GET /later?q=1 HTTP/1.1\r\n" HOST "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
		 "TE: trailers\r\nX-Token: secret\r\nX-Forwarded-For: 6.6.6.6\r\nAccept: b\r\n\r\n",
		 &o);
	CHECK_STR(fix_read(server, NULL), "GET /later?q=1 HTTP/1.1\r\nHost: a.test:81\r\n"
					  "Accept: b\r\nX-Forwarded-Proto: http\r\n"
					  "X-Forwarded-Host: a.test:81\r\n\r\n");
	fix_send(server, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\nX-Other: 2\r\n"
			 "Keep-Alive: timeout=1\r\nConnection: X-Secret\r\nX-Secret: 3\r\n\r\nok");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 201 && strstr(text, "X-Other: 2\r\n") && !closed);
	CHECK(!strstr(text, "X-Secret") && !strstr(text, "timeout=1\r\n"));
	CHECK_STR(fix_body(text), "ok");
	CHECK(proxies_ended == 1 && returned >= 0); /* it can be used again */
	close(fd);
	close(returned);
	close(server);
	fix_end();
}

static void an_absolute_target_becomes_a_path(void)
{
	int fd;

	fix_begin();
	fd = ask("GET http://a.test:81/later?q=1 HTTP/1.1\r\n" HOST "\r\n", NULL);
	CHECK_STR(fix_read(server, NULL), "GET /later?q=1 HTTP/1.1\r\n" HOST "\r\n");
	close(fd);
	close(server);
	fix_end();
}

static void bodies_pass_both_ways(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = ask("POST /later HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		 NULL);
	CHECK_STR(fix_body(fix_read(server, NULL)), "3\r\nabc\r\n");
	fix_send(fd, "1\r\nd\r\n0\r\n\r\n");
	CHECK_STR(fix_read(server, NULL), "1\r\nd\r\n0\r\n\r\n");
	fix_send(server, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 200);
	CHECK_STR(fix_body(text), "2\r\nhi\r\n");
	fix_send(server, "0\r\n\r\n");
	CHECK_STR(fix_read(fd, NULL), "0\r\n\r\n");
	CHECK(proxies_ended == 1 && returned >= 0);
	close(fd);
	close(returned);
	close(server);
	fix_end();
}

static void answers_until_the_end_and_to_head(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = ask("GET /later HTTP/1.1\r\n" HOST "\r\n", NULL);
	(void)fix_read(server, NULL);
	fix_send(server, "HTTP/1.0 200 OK\r\n\r\nabc");
	close(server);
	fix_turn();
	text = fix_read(fd, NULL);
	CHECK_STR(fix_body(text), "3\r\nabc\r\n0\r\n\r\n");
	CHECK(proxies_ended == 1 && returned == FD_NONE);
	close(fd);
	fd = ask("HEAD /later HTTP/1.1\r\n" HOST "\r\n", NULL);
	fix_send(server, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
	text = fix_read(fd, NULL);
	CHECK(strstr(text, "Content-Length: 99\r\n") && fix_body(text)[0] == '\0');
	close(fd);
	fix_turn();
	close(returned);
	close(server);
	fix_end();
}

static void an_upgrade_becomes_a_tunnel(void)
{
	int fd;
	const char *text;
	bool closed;

	fix_begin();
	fd = ask("GET /later HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		 "Sec-WebSocket-Key: k\r\n\r\nearly",
		 NULL);
	text = fix_read(server, NULL);
	CHECK(strstr(text, "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"));
	CHECK(!strstr(text, "early")); /* not before the server agreed */
	fix_send(server, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			 "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nfrom server");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 101 && strstr(text, "Sec-WebSocket-Accept: x\r\n"));
	CHECK_STR(fix_body(text), "from server");
	CHECK_STR(fix_read(server, NULL), "early");
	fix_send(fd, "GET /admin HTTP/1.1\r\n\r\n"); /* no request any more */
	CHECK_STR(fix_read(server, NULL), "GET /admin HTTP/1.1\r\n\r\n");
	close(server);
	fix_turn();
	(void)fix_read(fd, &closed);
	CHECK(closed && fix_server.counters.requests == 1);
	close(fd);
	fix_end();
}

static void bad_answers_give_502(void)
{
	static const char *const bad[] = {
		"nonsense\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	};

	fix_begin();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int fd = ask("GET /later HTTP/1.1\r\n" HOST "\r\n", NULL);

		fix_send(server, bad[i]);
		CHECK(fix_status(fix_read(fd, NULL)) == 502);
		close(fd);
		close(server);
	}
	fix_turn();
	CHECK(proxies_ended == ARRAY_LEN(bad));
	fix_end();
}

static void a_server_that_fails_late_cuts_the_answer(void)
{
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = ask("GET /later HTTP/1.1\r\n" HOST "\r\n", NULL);
	fix_send(server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 200 && !closed);
	close(server);
	fix_turn();
	CHECK_STR(fix_read(fd, &closed), "");
	CHECK(closed);
	close(fd);
	fix_end();
}

static void a_dead_or_silent_server_is_reported(void)
{
	int fd;

	fix_begin();
	use_failed = true;
	fd = ask("GET /later HTTP/1.1\r\n" HOST "\r\n", NULL);
	close(server);
	fix_turn();
	CHECK(fix_status(fix_read(fd, NULL)) == 502 && failures == 1);
	close(fd);
	fd = ask("GET /later HTTP/1.1\r\n" HOST "\r\n",
		 &(struct http_proxy_options){ .answer_ms = 1000 });
	fix_wait(1001);
	CHECK(fix_status(fix_read(fd, NULL)) == 504 && failures == 2);
	close(fd);
	close(server);
	fix_end();
}

static void both_directions_have_back_pressure(void)
{
	static char block[64 * 1024];
	size_t sent = 0, got = 0;
	ssize_t n;
	int fd;

	fix_begin();
	fd = ask("POST /later HTTP/1.1\r\n" HOST "Content-Length: 5000000\r\n\r\n", NULL);
	do {
		n = send(fd, block, sizeof block, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		fix_turn();
	} while (n > 0);
	CHECK(sent < 2000000);
	while (got < sent) {
		n = recv(server, block, sizeof block, 0);
		got += n > 0 ? (size_t)n : 0;
		fix_turn();
	}
	CHECK(got >= sent);
	fix_send(server, "HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
	sent = 0;
	do {
		n = send(server, block, sizeof block, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		fix_turn();
	} while (n > 0);
	CHECK(sent < 4000000);
	(void)fix_read(fd, NULL);
	n = send(server, block, sizeof block, MSG_NOSIGNAL);
	CHECK(n > 0);
	close(fd);
	fix_turn();
	CHECK(proxies_ended == 1 && returned == FD_NONE);
	close(server);
	fix_end();
}

T_MAIN(T(hop_by_hop_headers_stay_behind), T(an_absolute_target_becomes_a_path),
       T(bodies_pass_both_ways), T(answers_until_the_end_and_to_head),
       T(an_upgrade_becomes_a_tunnel), T(bad_answers_give_502),
       T(a_server_that_fails_late_cuts_the_answer), T(a_dead_or_silent_server_is_reported),
       T(both_directions_have_back_pressure))
