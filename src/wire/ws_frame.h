/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames (RFC 6455 5). Without extensions: reserved bits must be 0. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* Status codes of close frames (RFC 6455 7.4). */
enum {
	WS_NORMAL = 1000,
	WS_GOING_AWAY = 1001,
	WS_PROTOCOL_ERROR = 1002,
	WS_NO_CODE = 1005,
	WS_NO_FRAME = 1006, /* the connection ended without a close frame */
	WS_NOT_UTF8 = 1007,
	WS_TOO_BIG = 1009,
};

enum { WS_CONTROL = 125 }; /* most bytes of a control frame */

/* Joins frames to messages. */
struct ws_reader {
	bool masked; /* the peer is a client: its frames must be masked; else none may be */
	unsigned char head[14];
	size_t head_n;
	uint64_t left; /* payload bytes that are missing */
	uint64_t at;   /* payload bytes that came: position of the mask */
	unsigned char mask[4];
	int opcode; /* of the current frame */
	bool fin, in_frame;
	int message;	    /* opcode of the message in `data`, or 0 */
	struct buf data;    /* the message */
	struct buf control; /* the control frame; it may come between frames of a message */
	bool clear_data, clear_control;
	const char *why; /* after an error */
	int code;	 /* after an error: status for the close frame */
};

void ws_reader_init(struct ws_reader *r, bool masked);
void ws_reader_done(struct ws_reader *r);
/*
 * Use bytes from the front of *in. Returns an opcode when a message or control frame is complete,
 * with *ret valid until the next call (text is valid UTF-8); WS_CONTINUATION (0) for more input;
 * -EBADMSG or -E2BIG, with r->code and r->why; -ENOMEM.
 */
int ws_reader_next(struct ws_reader *r, struct str *in, struct str *ret);
/* The status of a close frame's payload; WS_NO_CODE if empty; -EBADMSG for a forbidden one. */
int ws_close_code(struct str payload);

/* Append one frame. mask: four bytes of a client, or NULL for a server. */
int ws_put(struct buf *b, int opcode, struct str payload, const unsigned char *mask);
int ws_put_close(struct buf *b, int code, struct str reason, const unsigned char *mask);

enum { WS_ACCEPT = 29 };
/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. -EBADMSG if the key is not 16 bytes in base64. */
int ws_accept_key(struct str key, char out[WS_ACCEPT]);
