/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

enum { PINGS_MISSED = 2 }; /* so many pings without any byte: the peer is gone */

static int send_frame(struct http_ws *w, int opcode, struct str data)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_WRITE);
	int r = ws_put(&b, opcode, data, NULL);

	return r < 0 ? r : http_answer_write(w->request, buf_str(&b));
}

static void close_with(struct http_ws *w, int code, struct str reason)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_WRITE);

	if (w->closing)
		return;
	w->closing = true;
	loop_timer_stop(w->request->server->loop, &w->ping);
	if (ws_put_close(&b, code, reason, NULL) == 0)
		(void)http_answer_write(w->request, buf_str(&b));
	http_answer_end(w->request);
}

static void on_ping(struct loop_timer *t)
{
	struct http_ws *w = container_of(t, struct http_ws, ping);
	struct http_server *s = w->request->server;

	/* While we do not read, nothing says whether the peer lives. */
	if (!w->held && w->missed++ >= PINGS_MISSED) {
		http_request_cut(w->request);
		return;
	}
	if (!http_answer_is_full(w->request))
		(void)send_frame(w, WS_PING, STR(""));
	loop_timer_set(s->loop, &w->ping, s->limits.ping_ms * NS_PER_MS, on_ping);
}

static void on_message(struct http_ws *w, int opcode, struct str data)
{
	int code;

	switch (opcode) {
	case WS_TEXT:
	case WS_BINARY:
		w->handler->message(w, opcode == WS_TEXT, data);
		break;
	case WS_PING: /* a peer that does not read gets no pongs either */
		if (!http_answer_is_full(w->request))
			(void)send_frame(w, WS_PONG, data);
		break;
	case WS_CLOSE:
		code = ws_close_code(data);
		w->code = code;
		close_with(w, code == WS_NO_CODE ? WS_NORMAL : code, STR(""));
		break;
	default:
		break;
	}
}

static size_t on_data(struct http_request *r, struct str data)
{
	struct http_ws *w = r->user;
	struct str in = data, message;
	int opcode;

	w->missed = 0;
	while (!w->held && !w->closing) {
		opcode = ws_reader_next(&w->reader, &in, &message);
		if (opcode == 0)
			break;
		if (opcode < 0) {
			w->code = w->reader.code ? w->reader.code : WS_NO_FRAME;
			close_with(w, w->code, str_of(w->reader.why));
		} else {
			on_message(w, opcode, message);
		}
	}
	return w->closing ? data.n : data.n - in.n;
}

static void on_body_end(struct http_request *r)
{
	struct http_ws *w = r->user;

	w->closing = true;
	http_answer_end(r);
}

static void on_room(struct http_request *r)
{
	struct http_ws *w = r->user;

	if (w->handler->room && !w->closing)
		w->handler->room(w);
}

static void on_ended(struct http_request *r, enum http_end why)
{
	struct http_ws *w = r->user;

	(void)why;
	loop_timer_stop(r->server->loop, &w->ping);
	w->handler->ended(w, w->code);
	ws_reader_done(&w->reader);
	free(w);
}

static const struct http_handler ws_handler = {
	.data = on_data,
	.body_end = on_body_end,
	.room = on_room,
	.ended = on_ended,
};

/* 0, or the status that refuses the handshake (RFC 6455 4.2.1). */
static int handshake_check(struct http_request *r, char accept[WS_ACCEPT])
{
	const struct http_head *h = http_request_head(r);
	const struct str *version = http_header(h, "sec-websocket-version");
	const struct str *key = http_header(h, "sec-websocket-key");

	if (!h->websocket || !http_request_is(r, "GET") || h->minor != 1 || r->has_body)
		return 400;
	if (!version || !str_is(*version, "13"))
		return 426;
	return key && ws_accept_key(*key, accept) == 0 ? 0 : 400;
}

struct http_ws *http_ws_accept(struct http_request *r, struct str protocol,
			       const struct http_ws_handler *handler, void *user)
{
	char accept[WS_ACCEPT];
	int status = handshake_check(r, accept);
	struct http_ws *w = status ? NULL : calloc(1, sizeof *w);
	struct http_server *s = r->server;

	if (!w) {
		if (status == 426)
			http_answer_header(r, "Sec-WebSocket-Version", STR("13"));
		http_answer(r, status ? status : 503, "text/plain",
			    STR("this is not a WebSocket handshake of version 13\n"));
		return NULL;
	}
	http_answer_header(r, "Sec-WebSocket-Accept", str_of(accept));
	if (protocol.n)
		http_answer_header(r, "Sec-WebSocket-Protocol", protocol);
	if (http_answer_tunnel(r, STR("websocket")) < 0) {
		free(w);
		return NULL;
	}
	*w = (struct http_ws){
		.request = r, .handler = handler, .user = user, .code = WS_NO_FRAME
	};
	ws_reader_init(&w->reader, true);
	r->handler = &ws_handler;
	r->user = w;
	loop_timer_set(s->loop, &w->ping, s->limits.ping_ms * NS_PER_MS, on_ping);
	return w;
}

int http_ws_send(struct http_ws *w, bool is_text, struct str data)
{
	return w->closing ? -EPIPE : send_frame(w, is_text ? WS_TEXT : WS_BINARY, data);
}

void http_ws_hold(struct http_ws *w, bool hold)
{
	w->held = hold;
	if (!hold)
		http_request_resume(w->request);
}

void http_ws_close(struct http_ws *w, int code, struct str reason)
{
	w->code = w->closing ? w->code : code;
	close_with(w, code, reason);
}
