/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 and 1.0 messages (RFC 9110, 9112), as strict as the RFCs allow. We refuse, and never
 * repair, what two readers could understand differently:
 * - bare CR or LF, obs-fold, blanks before a colon
 * - Content-Length twice or with Transfer-Encoding; codings other than "chunked"; bad chunk sizes
 * - several Host headers, userinfo
 *
 * Heads are views of the input; nothing is allocated. Bodies are parsed piece by piece.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "wire/host.h"

struct http_header {
	struct str name, value; /* value without surrounding blanks */
};

/* RFC 9112 3.2 */
enum http_form { HTTP_ORIGIN, HTTP_ABSOLUTE, HTTP_AUTHORITY, HTTP_ASTERISK };

enum http_framing { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_CLOSE };

struct http_head {
	/* of a request */
	struct str method, target;
	enum http_form form;
	struct str path;  /* "/..." without the query; "" for CONNECT, "*" for HTTP_ASTERISK */
	struct str query; /* after the '?' */
	bool has_host;	  /* host is from the target, or else from Host; they must agree */
	struct host host;
	uint16_t port; /* 0 if none was given */
	bool is_connect;
	bool expect_continue;
	/* of a response */
	int status;
	struct str reason;
	/* of both */
	int minor; /* version 1.minor: 0 or 1 */
	enum http_framing framing;
	uint64_t length; /* of HTTP_BODY_LENGTH */
	bool keep_alive;
	bool upgrade;	/* Connection has "upgrade", and there is an Upgrade header */
	bool websocket; /* Upgrade is "websocket" only */
	struct http_header headers[LIMIT_HTTP_HEADERS];
	size_t n;
	const char *why; /* after an error: the reason, such as "a header name has a blank" */
};

/*
 * in: the bytes from the start of a message. Returns one of:
 * - the size of the head, or 0 for more input
 * - -EBADMSG (answer 400)
 * - -E2BIG above LIMIT_HTTP_HEAD or LIMIT_HTTP_HEADERS (431)
 * - -EPROTO for another version (505)
 * - -EOPNOTSUPP for a coding other than "chunked" (501)
 * - -ENOMSG for an Expect other than "100-continue" (417)
 */
int64_t http_request_parse(struct str in, struct http_head *ret);
/* method: of the request; it decides whether there is a body. */
int64_t http_response_parse(struct str in, struct str method, struct http_head *ret);
/* The HTTP status for an error of http_request_parse(). */
int http_error_status(int64_t err);

/* The value of the only header with this name (any case). NULL if there is none or several. */
const struct str *http_header(const struct http_head *h, const char *name);
/* True if any line of a comma-separated header has this token (any case). */
bool http_has_token(const struct http_head *h, const char *name, const char *token);

/* Parse a body. */
enum http_body_event { HTTP_MORE, HTTP_DATA, HTTP_END };
enum http_body_state {
	HTTP_S_DATA,
	HTTP_S_CLOSE,
	HTTP_S_SIZE,
	HTTP_S_EXT,
	HTTP_S_SIZE_LF,
	HTTP_S_CHUNK,
	HTTP_S_CHUNK_CR,
	HTTP_S_CHUNK_LF,
	HTTP_S_TRAILER,
	HTTP_S_DONE,
	HTTP_S_BAD,
};

struct http_body {
	enum http_body_state state;
	uint64_t left;
	unsigned line;	  /* bytes of the current line */
	unsigned trailer; /* bytes of the trailer section so far */
	unsigned char last;
	bool named;
	const char *why;
};

void http_body_init(struct http_body *b, const struct http_head *h);
/*
 * Use bytes from the front of *in. HTTP_DATA: *ret is the next part of the content. HTTP_END: the
 * body is complete, and the rest of *in belongs to the next message. -EBADMSG, -E2BIG.
 */
int http_body_next(struct http_body *b, struct str *in, struct str *ret);
/* The stream ended. 0, or -EBADMSG if the body is incomplete. */
int http_body_eof(const struct http_body *b);
