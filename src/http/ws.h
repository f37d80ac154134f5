/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a WebSocket (RFC 6455) on a request. No extensions. Messages are joined from
 * their frames, at most LIMIT_WS_MESSAGE. The server pings idle peers and closes deaf ones.
 */
#pragma once

#include "http/request.h"
#include "wire/ws_frame.h"

struct http_ws;

/* All run from the loop. message and ended must be set. */
struct http_ws_handler {
	/* One whole message. Text is valid UTF-8. The view lives until this returns. */
	void (*message)(struct http_ws *w, bool is_text, struct str data);
	/* Sending has room again (as struct http_handler). */
	void (*room)(struct http_ws *w);
	/* The last call; w is freed afterwards. code: of the peer's close frame, or 1006. */
	void (*ended)(struct http_ws *w, int code);
};

struct http_ws {
	struct http_request *request;
	const struct http_ws_handler *handler;
	void *user;
	/* internal */
	struct ws_reader reader;
	struct loop_timer ping;
	unsigned missed; /* pings since the client's last bytes */
	bool closing, held;
	int code;
};

/*
 * Answer a WebSocket handshake with 101. protocol: the chosen Sec-WebSocket-Protocol, or empty.
 * Replaces r->handler and r->user. NULL: the request is no handshake and got 400 or 426, or memory
 * ran out; w does not exist then.
 */
struct http_ws *http_ws_accept(struct http_request *r, struct str protocol,
			       const struct http_ws_handler *handler, void *user);
/* As http_answer_write(). */
int http_ws_send(struct http_ws *w, bool is_text, struct str data);
/* Stop or continue to deliver messages: back-pressure towards the client. */
void http_ws_hold(struct http_ws *w, bool hold);
/* Send a close frame and end the connection; `ended` follows. */
void http_ws_close(struct http_ws *w, int code, struct str reason);
