/* SPDX-License-Identifier: Apache-2.0 */
#include "http/fixture.h"

#define HOST "Host: a\r\n"

static void a_request_is_answered_and_the_connection_stays(void)
{
	int fd;
	const char *text;
	bool closed;

	fix_begin();
	fd = fix_client();
	for (int i = 0; i < 3; i++) {
		fix_send(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
		text = fix_read(fd, &closed);
		CHECK(fix_status(text) == 200 && !closed);
		CHECK(strstr(text, "\r\nContent-Length: 5\r\n") && strstr(text, "\r\nDate: "));
		CHECK(strstr(text, "\r\nContent-Type: text/plain\r\n"));
		CHECK_STR(fix_body(text), "hello");
	}
	CHECK(fix_ended[HTTP_END_DONE] == 3 && fix_server.counters.requests == 3);
	CHECK(fix_server.counters.idle == 1 && fix_server.memory == 0);
	close(fd);
	fix_turn();
	CHECK(fix_server.counters.conns == 0);
	fix_end();
}

static void byte_by_byte_gives_the_same_answer(void)
{
	static const char in[] = "POST /echo HTTP/1.1\r\n" HOST
				 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n"
				 "0\r\nT: v\r\n\r\n";
	char byte[2] = "";
	int fd;

	fix_begin();
	fd = fix_client();
	for (size_t i = 0; i < sizeof in - 1; i++) {
		byte[0] = in[i];
		fix_send(fd, byte);
	}
	CHECK_STR(fix_body(fix_read(fd, NULL)), "abcde");
	fix_send(fd, in);
	CHECK_STR(fix_body(fix_read(fd, NULL)), "abcde");
	close(fd);
	fix_end();
}

static void pipelined_requests_are_answered_in_order(void)
{
	int fd;
	const char *text, *second;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nONE"
		     "GET /later HTTP/1.1\r\n" HOST "\r\n"
		     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nTWO");
	text = fix_read(fd, NULL);
	CHECK_STR(fix_body(text), "ONE");
	CHECK(fix_request);
	http_answer(fix_request, 201, "text/plain", STR("LATER"));
	fix_turn();
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 201);
	second = strstr(text, "LATERHTTP/1.1 200 OK");
	CHECK(second && strcmp(fix_body(second), "TWO") == 0);
	close(fd);
	fix_end();
}

static void every_connection_of_a_busy_turn_is_served(void)
{
	enum { BUSY = 5, EACH = 40 };
	char text[EACH * 40] = "";
	int fds[BUSY];

	for (int i = 0; i < EACH; i++)
		(void)snprintf(text + strlen(text), 40, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	fix_begin();
	for (int i = 0; i < BUSY; i++)
		fds[i] = fix_client();
	for (int i = 0; i < BUSY; i++)
		CHECK(send(fds[i], text, strlen(text), 0) == (ssize_t)strlen(text));
	fix_turn();
	fix_turn();
	CHECK(fix_ended[HTTP_END_DONE] == BUSY * EACH && !fix_server.work_first);
	for (int i = 0; i < BUSY; i++)
		close(fds[i]);
	fix_end();
}

static void head_has_the_length_and_no_body(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n");
	text = fix_read(fd, NULL);
	CHECK(strstr(text, "Content-Length: 5\r\n"));
	CHECK_STR(fix_body(text), "");
	fix_send(fd, "GET /none HTTP/1.1\r\n" HOST "\r\n");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 204 && !strstr(text, "Content-Length"));
	close(fd);
	fix_end();
}

static void connection_close_closes(void)
{
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	text = fix_read(fd, &closed);
	CHECK(strstr(text, "\r\nConnection: close\r\n") && closed);
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /hello HTTP/1.0\r\n\r\n");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 200 && closed);
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	text = fix_read(fd, &closed);
	CHECK(strstr(text, "\r\nConnection: keep-alive\r\n") && !closed);
	close(fd);
	fix_end();
}

static void continue_is_sent_when_the_app_reads(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST
		     "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	CHECK_STR(fix_read(fd, NULL), "HTTP/1.1 100 Continue\r\n\r\n");
	fix_send(fd, "ok");
	CHECK_STR(fix_body(fix_read(fd, NULL)), "ok");
	/* The app answers without reading: no 100, and the connection cannot stay. */
	fix_send(fd, "POST /hello HTTP/1.1\r\n" HOST
		     "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 200 && strstr(text, "Connection: close\r\n"));
	close(fd);
	fix_end();
}

static void a_short_unread_body_keeps_the_connection(void)
{
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n12345");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 200 && !closed && !strstr(text, "Connection: close"));
	fix_send(fd, "67890GET /none HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(fd, &closed)) == 204 && !closed);
	/* A chunked one that is complete is dropped, an endless one closes. */
	fix_send(fd, "POST /hello HTTP/1.1\r\n" HOST
		     "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 200 && !closed);
	fix_send(fd,
		 "POST /hello HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
	text = fix_read(fd, &closed);
	CHECK(strstr(text, "Connection: close") && closed);
	close(fd);
	fix_end();
}

static void an_early_answer_survives_a_large_upload(void)
{
	static char zeros[1 << 16];
	size_t sent = 0;
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 3000000\r\n\r\n");
	while (sent < 3000000) {
		ssize_t n = send(fd, zeros, sizeof zeros, MSG_NOSIGNAL);

		CHECK(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		fix_turn();
	}
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 200 && strstr(text, "Connection: close") && closed);
	CHECK(fix_server.counters.conns == 1); /* it lingers for our end */
	close(fd);
	fix_turn();
	CHECK(fix_server.counters.conns == 0);
	fix_end();
}

static void oversize_bodies_get_413(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 413 && strstr(fix_body(text), "too large"));
	CHECK(fix_ended[HTTP_END_REFUSED] == 1);
	close(fd);
	fix_end();
}

static void a_cut_body_gets_400(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
	CHECK(shutdown(fd, SHUT_WR) == 0);
	fix_turn();
	CHECK(fix_status(fix_read(fd, NULL)) == 400);
	CHECK(fix_ended[HTTP_END_REFUSED] == 1);
	close(fd);
	fix_end();
}

static void headers_of_the_app_cannot_split_the_answer(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /evil HTTP/1.1\r\n" HOST "\r\n");
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 500 && !strstr(text, "Set-Cookie"));
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /lost HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(fd, NULL)) == 500);
	close(fd);
	fix_end();
}

static void a_client_that_leaves_ends_its_request(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_request);
	close(fd);
	fix_turn();
	CHECK(!fix_request && fix_ended[HTTP_END_GONE] == 1 && fix_server.counters.conns == 0);
	fix_end();
}

static void a_half_closed_client_can_still_be_answered(void)
{
	int fd;
	const char *text;
	bool closed;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /patient HTTP/1.1\r\n" HOST "\r\n");
	CHECK(shutdown(fd, SHUT_WR) == 0);
	fix_turn();
	CHECK(fix_gones == 1 && fix_request);
	http_answer(fix_request, 200, "text/plain", STR("late"));
	text = fix_read(fd, &closed);
	fix_turn();
	text = text[0] ? text : fix_read(fd, &closed);
	CHECK_STR(fix_body(text), "late");
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /gone HTTP/1.1\r\n" HOST "\r\n");
	CHECK(shutdown(fd, SHUT_WR) == 0);
	fix_turn();
	CHECK(fix_ended[HTTP_END_CUT] == 1);
	close(fd);
	fix_end();
}

static void paths_are_checked(void)
{
	static const char *const bad[] = { "/a/../b", "/%2e%2e/b", "/a%", "/a%zz",
					   "/a%00",   "/a\\b",	   "/./a" };
	char text[128];

	fix_begin();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int fd = fix_client();

		(void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", bad[i]);
		fix_send(fd, text);
		CHECK(fix_status(fix_read(fd, NULL)) == 400);
		close(fd);
	}
	fix_end();
}

static void draining_closes_idle_connections_and_finishes_the_rest(void)
{
	int idle, busy;
	bool closed;
	const char *text;

	fix_begin();
	idle = fix_client();
	busy = fix_client();
	fix_send(busy, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	http_server_drain(&fix_server);
	fix_turn();
	(void)fix_read(idle, &closed);
	CHECK(closed);
	http_answer(fix_request, 200, NULL, STR(""));
	fix_turn();
	text = fix_read(busy, &closed);
	CHECK(fix_status(text) == 200 && strstr(text, "Connection: close") && closed);
	close(idle);
	close(busy);
	fix_end();
}

static int fix_given[4];
static unsigned fix_givens;

static void take_given(void *user, int fd, bool trusted)
{
	(void)user;
	CHECK(trusted); /* a unix socket is */
	fix_given[fix_givens++] = fd;
}

static void idle_connections_can_be_handed_over(void)
{
	int fd, busy;

	fix_begin();
	fd = fix_client();
	busy = fix_client();
	fix_send(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	(void)fix_read(fd, NULL);
	fix_send(busy, "GET /hel");
	CHECK(http_server_give_idle(&fix_server, take_given, NULL) == 1 && fix_givens == 1);
	fix_turn();
	CHECK(fix_server.counters.conns == 1);
	CHECK(http_server_inherit(&fix_server, fix_given[0], true) == 0);
	fix_turn();
	fix_send(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	CHECK_STR(fix_body(fix_read(fd, NULL)), "hello");
	close(fd);
	close(busy);
	fix_end();
}

static void stopping_ends_every_request(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	fix_end();
	CHECK(fix_ended[HTTP_END_STOPPED] == 1);
	close(fd);
}

static void one_owner_has_half_of_the_room_for_bodies(void)
{
	static const char post[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 600\r\n\r\n";
	static char block[600];
	struct http_owner o = { 0 };
	int owned, other;

	fix_begin_with(&(struct http_limits){ .bodies = 1000 });
	owned = fix_client();
	other = fix_client();
	fix_send(owned, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	http_request_own(fix_request, &o);
	http_answer(fix_request, 204, NULL, STR(""));
	fix_turn();
	CHECK(fix_status(fix_read(owned, NULL)) == 204 && o.conns == 1);
	fix_send(owned, post);
	CHECK(send(owned, block, sizeof block, 0) == sizeof block);
	fix_turn();
	CHECK(fix_server.full == 1 && o.bodies <= 500);
	fix_send(other, post);
	CHECK(send(other, block, sizeof block, 0) == sizeof block);
	fix_turn();
	CHECK(fix_status(fix_read(other, NULL)) == 200);
	fix_wait(5001);
	CHECK(fix_status(fix_read(owned, NULL)) == 503);
	close(owned);
	close(other);
	fix_wait(5001);
	CHECK(o.conns == 0 && o.bodies == 0);
	fix_end();
}

T_MAIN(T(a_request_is_answered_and_the_connection_stays), T(byte_by_byte_gives_the_same_answer),
       T(pipelined_requests_are_answered_in_order), T(every_connection_of_a_busy_turn_is_served),
       T(head_has_the_length_and_no_body), T(connection_close_closes),
       T(continue_is_sent_when_the_app_reads), T(a_short_unread_body_keeps_the_connection),
       T(an_early_answer_survives_a_large_upload), T(oversize_bodies_get_413),
       T(a_cut_body_gets_400), T(headers_of_the_app_cannot_split_the_answer),
       T(a_client_that_leaves_ends_its_request), T(a_half_closed_client_can_still_be_answered),
       T(paths_are_checked), T(draining_closes_idle_connections_and_finishes_the_rest),
       T(idle_connections_can_be_handed_over), T(stopping_ends_every_request),
       T(one_owner_has_half_of_the_room_for_bodies))
