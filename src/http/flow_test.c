/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, back-pressure, deadlines and limits. */
#include <netinet/in.h>
#include <sys/resource.h>
#include <zlib.h>

#include "http/fixture.h"
#include "wire/connect_envelope.h"

#define HOST "Host: a\r\n"

static void a_stream_is_chunked_and_ends(void)
{
	int fd;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(http_answer_begin(fix_request, 200, "text/event-stream", HTTP_LENGTH_UNKNOWN) == 0);
	fix_turn();
	text = fix_read(fd, NULL); /* the head goes out at once */
	CHECK(strstr(text, "Transfer-Encoding: chunked\r\n"));
	CHECK(http_answer_event(fix_request, STR("e"), STR("1"), STR("a\nb")) == 0);
	fix_turn();
	CHECK_STR(fix_read(fd, NULL), "20\r\nevent: e\nid: 1\ndata: a\ndata: b\n\n\r\n");
	CHECK(http_answer_envelope(fix_request, ENVELOPE_END, STR("{}")) == 0);
	http_answer_end(fix_request);
	fix_turn();
	CHECK(fix_ended[HTTP_END_DONE] == 1);
	fix_send(fd, "GET /none HTTP/1.1\r\n" HOST "\r\n");
	text = fix_read(fd, NULL);
	CHECK(memcmp(text, "7\r\n\2\0\0\0\2{}\r\n0\r\n\r\nHTTP/1.1 204", 27) == 0);
	close(fd);
	fix_end();
}

static void a_stream_of_known_length_is_exact(void)
{
	int fd;
	bool closed;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(http_answer_begin(fix_request, 200, NULL, 4) == 0);
	CHECK(http_answer_write(fix_request, STR("abc")) == 0);
	CHECK(http_answer_write(fix_request, STR("de")) == -E2BIG);
	http_answer_end(fix_request); /* a byte is missing: the client must notice */
	fix_turn();
	(void)fix_read(fd, &closed);
	CHECK(closed && fix_ended[HTTP_END_CUT] == 1);
	close(fd);
	fix_end();
}

static void an_old_client_gets_a_stream_until_the_end(void)
{
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK(http_answer_begin(fix_request, 200, NULL, HTTP_LENGTH_UNKNOWN) == 0);
	CHECK(http_answer_write(fix_request, STR("abc")) == 0);
	http_answer_end(fix_request);
	text = fix_read(fd, &closed);
	text = text[0] ? text : fix_read(fd, &closed);
	CHECK(!strstr(text, "chunked") && strstr(text, "Connection: close"));
	CHECK_STR(fix_body(text), "abc");
	close(fd);
	fix_end();
}

static void a_client_that_does_not_read_stops_the_stream(void)
{
	static char block[32 * 1024];
	size_t sent = 0, got = 0;
	int fd, r;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(http_answer_begin(fix_request, 200, NULL, 64 << 20) == 0);
	do {
		r = http_answer_write(fix_request, (struct str){ block, sizeof block });
		CHECK(r >= 0);
		sent += sizeof block;
		fix_turn();
	} while (r == 0);
	CHECK(http_answer_is_full(fix_request) && fix_rooms == 0);
	CHECK(http_answer_unsent(fix_request) >= LIMIT_HTTP_WINDOW);
	CHECK(fix_server.memory < 2 * LIMIT_HTTP_WINDOW + (256 << 10));
	while (fix_rooms == 0) {
		ssize_t n = recv(fd, block, sizeof block, 0);

		CHECK(n > 0);
		got += (size_t)n;
		fix_turn();
	}
	CHECK(got < sent && http_answer_unsent(fix_request) <= LIMIT_HTTP_WINDOW / 2);
	close(fd);
	fix_turn();
	CHECK(fix_ended[HTTP_END_GONE] == 1);
	fix_end();
}

static void an_app_that_takes_nothing_stops_the_client(void)
{
	static char block[64 * 1024];
	size_t sent = 0;
	ssize_t n;
	int fd;

	fix_begin();
	fd = fix_client();
	fix_take = 100;
	fix_send(fd, "POST /sink HTTP/1.1\r\n" HOST "Content-Length: 10000000\r\n\r\n");
	do {
		n = send(fd, block, sizeof block, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		fix_turn();
	} while (n > 0);
	CHECK(errno == EAGAIN && sent < 2000000 && fix_got.len == 100);
	CHECK(fix_server.memory <= 256 << 10);
	fix_take = SIZE_MAX;
	http_request_resume(&fix_server.all->x->r);
	while (sent < 10000000) {
		size_t left = 10000000 - sent;

		fix_turn();
		n = send(fd, block, left < sizeof block ? left : sizeof block, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	fix_turn();
	CHECK_STR(fix_body(fix_read(fd, NULL)), "10000000");
	close(fd);
	fix_end();
}

static size_t gzip_of(const char *data, size_t n, char *out, size_t room)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 << 20);

	CHECK(gzip_put(&b, (struct str){ data, n }) == 0 && b.len <= room);
	memcpy(out, b.data, b.len);
	return b.len;
}

static void gzip_bodies_are_decoded_within_bounds(void)
{
	static char zeros[8 << 20], packed[64 * 1024];
	char head[256];
	size_t n = gzip_of("hello gzip", 10, packed, sizeof packed);
	int fd;

	fix_begin();
	fd = fix_client();
	(void)snprintf(head, sizeof head,
		       "POST /echo HTTP/1.1\r\n" HOST
		       "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
		       n);
	fix_send(fd, head);
	CHECK(send(fd, packed, n, 0) == (ssize_t)n);
	fix_turn();
	CHECK_STR(fix_body(fix_read(fd, NULL)), "hello gzip");
	/* A bomb: 8 MiB of zeros in 8 KiB. */
	n = gzip_of(zeros, sizeof zeros, packed, sizeof packed);
	(void)snprintf(head, sizeof head,
		       "POST /sink HTTP/1.1\r\n" HOST
		       "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
		       n);
	fix_send(fd, head);
	CHECK(send(fd, packed, n, 0) == (ssize_t)n);
	fix_turn();
	CHECK(fix_status(fix_read(fd, NULL)) == 413 && fix_got.len < sizeof zeros);
	close(fd);
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST
		     "Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx");
	CHECK(fix_status(fix_read(fd, NULL)) == 415);
	close(fd);
	fix_end();
}

static void large_json_is_compressed_for_clients_that_accept_it(void)
{
	static char json[20000];
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct gunzip g;
	struct str in, out;
	const char *text, *at;
	int fd;

	memset(json, ' ', sizeof json - 1);
	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "Accept-Encoding: gzip, deflate\r\n\r\n");
	CHECK(buf_add_c(&b, json) == 0);
	http_answer_buf(fix_request, 200, "application/json", &b);
	fix_turn();
	text = fix_read(fd, NULL);
	CHECK(strstr(text, "Content-Encoding: gzip\r\n") && strstr(text, "Vary: Accept-Encoding"));
	at = strstr(text, "Content-Length: ");
	in = (struct str){ fix_body(text), strtoul(at + 16, NULL, 10) };
	CHECK(gunzip_init(&g, 0) == 0);
	CHECK(gunzip_next(&g, &in, &out) == GUNZIP_DATA && out.p[0] == ' ');
	gunzip_done(&g);
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(buf_add_c(&b, json) == 0);
	http_answer_buf(fix_request, 200, "application/json", &b);
	fix_turn();
	text = fix_read(fd, NULL);
	CHECK(!strstr(text, "gzip") && strlen(fix_body(text)) == sizeof json - 1);
	close(fd);
	fix_end();
}

/* --- deadlines --- */

static void idle_connections_live_650_seconds_and_new_ones_30(void)
{
	int fd;
	bool closed;

	fix_begin();
	fd = fix_client();
	fix_wait(29 * 1000);
	(void)fix_read(fd, &closed);
	CHECK(!closed);
	fix_wait(1001);
	(void)fix_read(fd, &closed);
	CHECK(closed);
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	(void)fix_read(fd, NULL);
	fix_wait(649 * 1000);
	(void)fix_read(fd, &closed);
	CHECK(!closed);
	fix_wait(1001);
	(void)fix_read(fd, &closed);
	CHECK(closed);
	close(fd);
	fix_end();
}

static void a_slow_head_ends_after_15_seconds_in_all(void)
{
	int fd;
	const char *text = "";

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /hello HTTP/1.1\r\n");
	for (int i = 0; i < 16 && !text[0]; i++) {
		fix_send(fd, "A: b\r\n");
		fix_wait(1000);
		text = fix_read(fd, NULL);
		CHECK(i >= 14 || !text[0]);
	}
	CHECK(fix_status(text) == 408);
	close(fd);
	fix_end();
}

static void a_slow_body_must_reach_a_rate(void)
{
	static char block[60 * 1024];
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
	CHECK(send(fd, block, sizeof block, 0) == sizeof block);
	fix_turn();
	fix_wait(89 * 1000); /* 30 s, and 60 s for 60 KiB */
	CHECK_STR(fix_read(fd, NULL), "");
	fix_wait(1001);
	CHECK(fix_status(fix_read(fd, NULL)) == 408);
	CHECK(fix_ended[HTTP_END_REFUSED] == 1);
	close(fd);
	fix_end();
}

static void an_upload_must_only_go_on(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "POST /sink HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
	for (int i = 0; i < 5; i++) {
		fix_wait(59 * 1000);
		fix_send(fd, "x");
		CHECK_STR(fix_read(fd, NULL), "");
	}
	fix_wait(60 * 1000 + 1);
	CHECK(fix_status(fix_read(fd, NULL)) == 408);
	close(fd);
	fix_end();
}

static void a_job_that_never_answers_gives_504(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	fix_wait(599 * 1000);
	CHECK_STR(fix_read(fd, NULL), "");
	fix_wait(1001);
	CHECK(fix_status(fix_read(fd, NULL)) == 504 && !fix_request);
	close(fd);
	fix_end();
}

static void a_client_that_takes_no_answer_is_cut_after_60_seconds(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(32 << 20);
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(buf_reserve(&b, 16 << 20) == 0);
	buf_grew(&b, 16 << 20);
	http_answer_buf(fix_request, 200, NULL, &b);
	fix_turn();
	CHECK(fix_server.memory >= 16 << 20);
	fix_wait(59 * 1000);
	CHECK(fix_server.counters.conns == 1);
	fix_wait(1001);
	CHECK(fix_server.counters.conns == 0 && fix_ended[HTTP_END_GONE] == 1);
	close(fd);
	fix_end();
}

static void lingering_ends_after_5_seconds(void)
{
	int fd;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "BAD\r\n\r\n");
	CHECK(fix_status(fix_read(fd, NULL)) == 400);
	CHECK(fix_server.counters.conns == 1);
	fix_wait(5001);
	CHECK(fix_server.counters.conns == 0);
	close(fd);
	fix_end();
}

/* --- limits --- */

static void a_huge_head_is_refused(void)
{
	static char text[LIMIT_HTTP_HEAD + 1];
	int fd;

	fix_begin();
	fd = fix_client();
	memset(text, 'a', sizeof text - 1);
	memcpy(text, "GET /", 5);
	fix_send(fd, text);
	CHECK(fix_status(fix_read(fd, NULL)) == 431);
	close(fd);
	fix_end();
}

static void bodies_wait_when_memory_is_short_and_get_503(void)
{
	static char block[600];
	int first, second;

	fix_begin_with(&(struct http_limits){ .bodies = 1000 });
	first = fix_client();
	second = fix_client();
	fix_send(first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 601\r\n\r\n");
	fix_send(second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 600\r\n\r\n");
	CHECK(send(first, block, sizeof block, 0) == sizeof block);
	fix_turn();
	CHECK(send(second, block, sizeof block, 0) == sizeof block);
	fix_turn();
	CHECK(fix_server.full == 1);
	fix_send(first, "x"); /* complete: its room is free for the second */
	CHECK(fix_status(fix_read(first, NULL)) == 200);
	fix_turn();
	CHECK(fix_status(fix_read(second, NULL)) == 200 && fix_server.full == 0);
	fix_send(first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 601\r\n\r\n");
	fix_send(second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 600\r\n\r\n");
	CHECK(send(first, block, sizeof block, 0) == sizeof block);
	fix_turn();
	CHECK(send(second, block, sizeof block, 0) == sizeof block);
	fix_turn();
	fix_wait(5001);
	CHECK(fix_status(fix_read(second, NULL)) == 503);
	close(first);
	close(second);
	fix_end();
}

static int listen_on_loopback(struct sockaddr_in *ret)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof *ret;

	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)ret, n) == 0 && listen(fd, 64) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)ret, &n) == 0);
	return fd;
}

static int connect_to(const struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) == 0);
	CHECK(io_set_nonblock(fd, true) == 0);
	fix_turn();
	return fd;
}

static bool is_closed(int fd)
{
	bool closed;

	(void)fix_read(fd, &closed);
	return closed;
}

static void one_address_cannot_have_all_connections(void)
{
	struct http_listener l;
	struct sockaddr_in a;
	struct http_owner owned[2] = { 0 };
	int listener, fds[5];

	fix_begin_with(&(struct http_limits){ .unknown_per_addr = 2, .per_addr = 3 });
	listener = listen_on_loopback(&a);
	CHECK(http_listen_add(&fix_server, &l, listener, NULL) == 0);
	for (int i = 0; i < 3; i++)
		fds[i] = connect_to(&a);
	CHECK(!is_closed(fds[0]) && !is_closed(fds[1]) && is_closed(fds[2]));
	CHECK(fix_server.counters.refused[HTTP_REFUSED_CONNS] == 1);
	/* A client that showed who it is makes room. */
	fix_send(fds[0], "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(http_request_peer(fix_request)->ip.len == 4);
	http_request_trust(fix_request);
	http_answer(fix_request, 204, NULL, STR(""));
	fix_turn();
	fds[3] = connect_to(&a);
	CHECK(!is_closed(fds[3]));
	/* Known clients have a limit, too. Each connection is counted for its last owner. */
	fix_send(fds[1], "GET /later HTTP/1.1\r\n" HOST "\r\n");
	http_request_trust(fix_request);
	http_request_own(fix_request, &owned[0]);
	http_request_own(fix_request, &owned[1]);
	CHECK(owned[0].conns == 0 && owned[1].conns == 1);
	http_request_last(fix_request);
	fds[4] = connect_to(&a);
	CHECK(is_closed(fds[4]));
	http_answer(fix_request, 204, NULL, STR(""));
	fix_turn();
	CHECK(is_closed(fds[1]));
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	fix_turn();
	CHECK(owned[1].conns == 0);
	for (int i = 0; i < HTTP_ADDR_SLOTS; i++)
		CHECK(fix_server.per_addr[i] == 0 && fix_server.all_per_addr[i] == 0);
	fix_end();
}

static void the_oldest_idle_connection_makes_room(void)
{
	struct http_listener l;
	struct sockaddr_in a;
	int fds[3];

	fix_begin_with(&(struct http_limits){ .conns = 2 });
	CHECK(http_listen_add(&fix_server, &l, listen_on_loopback(&a), NULL) == 0);
	fds[0] = connect_to(&a);
	fds[1] = connect_to(&a);
	fix_send(fds[0], "GET /later HTTP/1.1\r\n" HOST "\r\n"); /* busy */
	fds[2] = connect_to(&a);
	CHECK(!is_closed(fds[0]) && is_closed(fds[1]) && !is_closed(fds[2]));
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	fix_end();
}

static void without_memory_nobody_is_accepted_and_idle_clients_leave(void)
{
	struct http_listener l;
	struct sockaddr_in a;
	int busy, idle, late;

	fix_begin_with(&(struct http_limits){ .memory = 100 });
	CHECK(http_listen_add(&fix_server, &l, listen_on_loopback(&a), NULL) == 0);
	busy = connect_to(&a);
	idle = connect_to(&a);
	fix_send(busy, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_server.memory > 100 && !is_closed(idle));
	late = connect_to(&a);
	CHECK(is_closed(idle) && fix_server.counters.conns == 1);
	CHECK(fix_server.counters.refused[HTTP_REFUSED_MEMORY] == 1);
	http_answer(fix_request, 204, NULL, STR(""));
	fix_turn();
	CHECK(fix_status(fix_read(busy, NULL)) == 204 && fix_server.counters.conns == 2);
	fix_send(late, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(late, NULL)) == 200);
	close(busy);
	close(idle);
	close(late);
	fix_end();
}

static void without_descriptors_a_client_gets_503_and_others_go_on(void)
{
	struct rlimit few = { 0, 0 }, old;
	struct http_listener l;
	struct sockaddr_in a;
	int kept, refused, late;

	fix_begin();
	CHECK(http_listen_add(&fix_server, &l, listen_on_loopback(&a), NULL) == 0);
	kept = connect_to(&a);
	refused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(refused >= 0 && late >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = (struct rlimit){ (rlim_t)late + 1, old.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(connect(refused, (struct sockaddr *)&a, sizeof a) == 0);
	fix_turn();
	CHECK(io_set_nonblock(refused, true) == 0);
	CHECK(fix_status(fix_read(refused, NULL)) == 503);
	CHECK(fix_server.counters.refused[HTTP_REFUSED_FILES] == 1 && fix_server.spare_fd >= 0);
	fix_send(kept, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(kept, NULL)) == 200);
	CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
	CHECK(connect(late, (struct sockaddr *)&a, sizeof a) == 0);
	CHECK(io_set_nonblock(late, true) == 0);
	fix_wait(101);
	fix_send(late, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(late, NULL)) == 200);
	close(kept);
	close(refused);
	close(late);
	fix_end();
}

static void a_tunnel_passes_raw_bytes(void)
{
	int fd;
	bool closed;
	const char *text;

	fix_begin();
	fd = fix_client();
	fix_send(fd, "GET /tunnel HTTP/1.1\r\n" HOST
		     "Connection: upgrade\r\nUpgrade: raw\r\n\r\nGET / HTTP/1.1\r\n");
	text = fix_read(fd, &closed);
	CHECK(fix_status(text) == 101 && !closed && fix_server.counters.requests == 1);
	CHECK(str_is(buf_str(&fix_got), "GET / HTTP/1.1\r\n"));
	CHECK(shutdown(fd, SHUT_WR) == 0);
	fix_turn();
	(void)fix_read(fd, &closed);
	CHECK(closed && fix_body_ends == 1 && fix_ended[HTTP_END_DONE] == 1);
	close(fd);
	fd = fix_client();
	fix_send(fd, "GET /tunnel HTTP/1.1\r\n" HOST "\r\n");
	CHECK(fix_status(fix_read(fd, NULL)) == 400);
	close(fd);
	fix_end();
}

T_MAIN(T(a_stream_is_chunked_and_ends), T(a_stream_of_known_length_is_exact),
       T(an_old_client_gets_a_stream_until_the_end),
       T(a_client_that_does_not_read_stops_the_stream),
       T(an_app_that_takes_nothing_stops_the_client), T(gzip_bodies_are_decoded_within_bounds),
       T(large_json_is_compressed_for_clients_that_accept_it),
       T(idle_connections_live_650_seconds_and_new_ones_30),
       T(a_slow_head_ends_after_15_seconds_in_all), T(a_slow_body_must_reach_a_rate),
       T(an_upload_must_only_go_on), T(a_job_that_never_answers_gives_504),
       T(a_client_that_takes_no_answer_is_cut_after_60_seconds), T(lingering_ends_after_5_seconds),
       T(a_huge_head_is_refused), T(bodies_wait_when_memory_is_short_and_get_503),
       T(one_address_cannot_have_all_connections), T(the_oldest_idle_connection_makes_room),
       T(without_memory_nobody_is_accepted_and_idle_clients_leave),
       T(without_descriptors_a_client_gets_503_and_others_go_on), T(a_tunnel_passes_raw_bytes))
