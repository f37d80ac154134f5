/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include "http/fixture.h"

#define HOST "Host: a\r\n"
#define HANDSHAKE \
	"GET /later HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n" \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

static struct buf messages = BUF_INIT(4 << 20);
static unsigned ended, rooms;
static int last_code;

static void on_message(struct http_ws *w, bool is_text, struct str data)
{
	CHECK(buf_printf(&messages, "%c:%.*s|", is_text ? 't' : 'b', STR_ARG(data)) == 0);
	if (str_is(data, "echo"))
		CHECK(http_ws_send(w, true, STR("ECHO")) == 0);
	if (str_is(data, "bye"))
		http_ws_close(w, WS_GOING_AWAY, STR("bye"));
}

static void on_room(struct http_ws *w)
{
	(void)w;
	rooms++;
}

static void on_ended(struct http_ws *w, int code)
{
	(void)w;
	ended++;
	last_code = code;
}

static const struct http_ws_handler handler = {
	.message = on_message,
	.room = on_room,
	.ended = on_ended,
};

static void send_frame(int fd, int opcode, struct str data)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4 << 20);

	CHECK(ws_put(&b, opcode, data, (const unsigned char *)"mask") == 0);
	CHECK(send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len);
	fix_turn();
}

static int open_ws(struct http_ws **ret)
{
	int fd = fix_client();
	const char *text;

	fix_send(fd, HANDSHAKE);
	CHECK(fix_request);
	*ret = http_ws_accept(fix_request, STR("v1"), &handler, NULL);
	CHECK(*ret);
	fix_turn();
	text = fix_read(fd, NULL);
	CHECK(fix_status(text) == 101);
	CHECK(strstr(text, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	CHECK(strstr(text, "Sec-WebSocket-Protocol: v1\r\n"));
	return fd;
}

static void messages_pass_both_ways(void)
{
	struct http_ws *w;
	int fd;

	fix_begin();
	fd = open_ws(&w);
	send_frame(fd, WS_TEXT, STR("hi"));
	send_frame(fd, WS_BINARY, STR(""));
	send_frame(fd, WS_TEXT, STR("echo"));
	CHECK(str_is(buf_str(&messages), "t:hi|b:|t:echo|"));
	CHECK_STR(fix_read(fd, NULL), "\x81\4ECHO");
	send_frame(fd, WS_PING, STR("p"));
	CHECK_STR(fix_read(fd, NULL), "\x8a\1p");
	close(fd);
	fix_turn();
	CHECK(ended == 1 && last_code == WS_NO_FRAME);
	fix_end();
}

static void close_frames_are_answered(void)
{
	struct http_ws *w;
	bool closed;
	int fd;

	fix_begin();
	fd = open_ws(&w);
	send_frame(fd, WS_CLOSE, STR("\x03\xe8"));
	CHECK(memcmp(fix_read(fd, &closed), "\x88\2\x03\xe8", 4) == 0 && closed);
	CHECK(ended == 1 && last_code == WS_NORMAL);
	close(fd);
	fd = open_ws(&w);
	send_frame(fd, WS_TEXT, STR("bye"));
	CHECK(memcmp(fix_read(fd, &closed),
		     "\x88\5\x03\xe9"
		     "bye",
		     7) == 0 &&
	      closed);
	CHECK(ended == 2 && last_code == WS_GOING_AWAY);
	close(fd);
	fix_end();
}

static void a_client_that_breaks_the_protocol_is_told_why(void)
{
	struct http_ws *w;
	bool closed;
	int fd;

	fix_begin();
	fd = open_ws(&w);
	CHECK(send(fd, "\x81\2hi", 4, 0) == 4); /* not masked */
	fix_turn();
	CHECK(memcmp(fix_read(fd, &closed) + 2, "\x03\xea", 2) == 0 && closed);
	CHECK(ended == 1 && last_code == WS_PROTOCOL_ERROR);
	close(fd);
	fix_end();
}

static void a_held_socket_delivers_nothing_until_it_is_released(void)
{
	struct http_ws *w;
	int fd;

	fix_begin();
	fd = open_ws(&w);
	http_ws_hold(w, true);
	send_frame(fd, WS_TEXT, STR("1"));
	send_frame(fd, WS_TEXT, STR("2"));
	CHECK(messages.len == 0);
	http_ws_hold(w, false);
	fix_turn();
	CHECK(str_is(buf_str(&messages), "t:1|t:2|"));
	close(fd);
	fix_end();
}

static void deaf_clients_are_dropped_and_living_ones_stay(void)
{
	struct http_ws *w;
	bool closed;
	int fd;

	fix_begin();
	fd = open_ws(&w);
	for (int i = 0; i < 5; i++) {
		fix_wait(30 * 1000);
		CHECK(memcmp(fix_read(fd, &closed), "\x89\0", 2) == 0 && !closed);
		send_frame(fd, WS_PONG, STR(""));
	}
	fix_wait(30 * 1000);
	fix_wait(30 * 1000);
	CHECK(ended == 0);
	fix_wait(30 * 1000);
	CHECK(ended == 1 && last_code == WS_NO_FRAME);
	close(fd);
	fix_end();
}

static void a_client_that_does_not_read_fills_the_window(void)
{
	static char block[32 * 1024];
	struct http_ws *w;
	int fd, r = 0;

	fix_begin();
	fd = open_ws(&w);
	for (int i = 0; i < 1000 && r == 0; i++) {
		r = http_ws_send(w, false, (struct str){ block, sizeof block });
		fix_turn();
	}
	CHECK(r == 1 && rooms == 0);
	(void)fix_read(fd, NULL);
	CHECK(rooms == 1);
	close(fd);
	fix_end();
}

static void what_is_no_handshake_is_refused(void)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{ "GET /later HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "GET /later HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		  426 },
		{ "GET /later HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		  "Sec-WebSocket-Key: short\r\nSec-WebSocket-Version: 13\r\n\r\n",
		  400 },
		{ "POST /later HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
		  400 },
	};

	fix_begin();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = fix_client();

		fix_send(fd, rows[i].text);
		CHECK(!http_ws_accept(fix_request, STR(""), &handler, NULL));
		fix_turn();
		CHECK(fix_status(fix_read(fd, NULL)) == rows[i].status);
		close(fd);
	}
	fix_end();
}

T_MAIN(T(messages_pass_both_ways), T(close_frames_are_answered),
       T(a_client_that_breaks_the_protocol_is_told_why),
       T(a_held_socket_delivers_nothing_until_it_is_released),
       T(deaf_clients_are_dropped_and_living_ones_stay),
       T(a_client_that_does_not_read_fills_the_window), T(what_is_no_handshake_is_refused))
