/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 and 1.0 messages (RFC 9110, 9112), as strict as the RFCs allow. What two readers
 * could understand differently is refused, never repaired: bare CR or LF, obs-fold, blanks
 * before a colon, Content-Length with Transfer-Encoding or twice, codings other than
 * "chunked", several Hosts, userinfo, bad chunk sizes. Heads are views of the input; nothing is
 * allocated. Bodies are followed piece by piece.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "wire/host.h"

struct http_header {
	struct str name, value; /* blanks around the value are gone */
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
	bool has_host;	  /* from the target where it has one, else from Host; they agree */
	struct host host;
	uint16_t port; /* 0 where none was written */
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
	bool upgrade;	/* Connection has "upgrade", and there is an Upgrade */
	bool websocket; /* and it is to "websocket", and nothing else */
	struct http_header headers[LIMIT_HTTP_HEADERS];
	size_t n;
	const char *why; /* after an error: "a header name has a blank" */
};

/*
 * in: the bytes from the start of a message. Bytes that the head takes, 0 for more input,
 * -EBADMSG (answer 400), -E2BIG above LIMIT_HTTP_HEAD or LIMIT_HTTP_HEADERS (431), -EPROTO for
 * another version (505), -EOPNOTSUPP for a coding that is not "chunked" (501).
 */
int64_t http_request_parse(struct str in, struct http_head *ret);
/* method: of the request, since it decides whether there is a body. */
int64_t http_response_parse(struct str in, struct str method, struct http_head *ret);
/* The status to answer an error of http_request_parse() with. */
int http_error_status(int64_t err);

/* The value of the only header of that name (any case), or NULL: none, or several. */
const struct str *http_header(const struct http_head *h, const char *name);
/* A comma-separated header has this token (any case), in any of its lines. */
bool http_has_token(const struct http_head *h, const char *name, const char *token);

/* Follow a body. */
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
	unsigned line;	  /* bytes of the line that is being read */
	unsigned trailer; /* bytes of the trailer section so far */
	unsigned char last;
	bool named;
	const char *why;
};

void http_body_init(struct http_body *b, const struct http_head *h);
/*
 * Use bytes from the front of *in. HTTP_DATA: *ret is the next part of the content. HTTP_END: the
 * body is over, what is left of *in belongs to the next message. -EBADMSG, -E2BIG.
 */
int http_body_next(struct http_body *b, struct str *in, struct str *ret);
/* The stream has ended here: 0, or -EBADMSG where the body is cut short. */
int http_body_eof(const struct http_body *b);
