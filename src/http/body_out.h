/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of an answer on their way to the socket: its head, then its body with its framing. Small
 * bodies are copied behind the head, so that both go out in one write; large ones are taken over.
 */
#pragma once

#include "base/buf.h"
#include "wire/http1.h"

enum http_out_framing {
	HTTP_OUT_NONE,	 /* no body: HEAD, 204, 304 */
	HTTP_OUT_LENGTH, /* `left` bytes follow */
	HTTP_OUT_CHUNKED,
	HTTP_OUT_RAW, /* until the connection closes: HTTP/1.0, tunnels */
};

struct http_body_out {
	struct buf out, next; /* `next` follows when `out` is sent */
	size_t sent;	      /* bytes of out */
	enum http_out_framing framing;
	uint64_t left; /* of HTTP_OUT_LENGTH */
};

void body_out_init(struct http_body_out *b);
void body_out_done(struct http_body_out *b);
size_t body_out_unsent(const struct http_body_out *b);
/* Frame and queue bytes. -E2BIG above the length; -ENOMEM. */
int body_out_add(struct http_body_out *b, struct str data);
/* Take over the memory of body, which is not framed. */
void body_out_take(struct http_body_out *b, struct buf *body);
/* Queue the end. -ENODATA if bytes of the length are missing. */
int body_out_end(struct http_body_out *b);
/* The next bytes to write, and how many were written. */
struct str body_out_front(struct http_body_out *b);
void body_out_wrote(struct http_body_out *b, size_t n);
