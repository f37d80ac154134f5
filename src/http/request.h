/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer, as the app sees them.
 *
 *   start(r) ── http_answer() at once                                      ── ended(r, DONE)
 *            ├─ r->handler = …; a job runs; later http_answer()            ── ended
 *            ├─ http_request_buffer() ── body(r, bytes) ── http_answer()   ── ended
 *            ├─ http_request_stream() ── data()… body_end() ── http_answer() ── ended
 *            └─ http_answer_begin() ── http_answer_write()… room()… http_answer_end() ── ended
 *
 * An app may read the body and write its answer at the same time. `ended` is always the last thing
 * that the app hears of a request: it drops its pointers there. It comes also if the client leaves,
 * so a job that answers later must check that its request still exists.
 */
#pragma once

#include "base/buf.h"
#include "http/server.h"

/* Why a request is over. */
enum http_end {
	HTTP_END_DONE,	  /* the whole answer was given to the kernel */
	HTTP_END_GONE,	  /* the client left, was too slow, or the connection broke */
	HTTP_END_REFUSED, /* the server answered itself: bad or oversize body, or time was up */
	HTTP_END_CUT,	  /* http_request_cut() */
	HTTP_END_STOPPED, /* http_server_done() */
};

/* What the app is told about one request. Each member may be NULL, with the effect given here. */
struct http_handler {
	/* http_request_buffer(): the whole body, decoded. The view lives until `ended`. */
	void (*body)(struct http_request *r, struct str body);
	/*
	 * http_request_stream() or a tunnel: the next bytes. Returns how many were taken. Fewer
	 * than all pauses reading until http_request_resume(); the rest comes again.
	 */
	size_t (*data)(struct http_request *r, struct str data);
	/* The streamed body is complete. In a tunnel: the client sends no more. */
	void (*body_end)(struct http_request *r);
	/* A stream that was full (http_answer_write() returned 1) has room again. */
	void (*room)(struct http_request *r);
	/*
	 * The client closed its sending side before its answer was complete; most such clients are
	 * away. Call http_request_cut(), or go on: the answer is still sent. NULL: the request is
	 * cut, and ends with HTTP_END_GONE.
	 */
	void (*gone)(struct http_request *r);
	/* The request is over; r is freed afterwards. */
	void (*ended)(struct http_request *r, enum http_end why);
};

struct http_request {
	/* Read only. The views live until `ended`. */
	struct str method;
	struct str target; /* as it came */
	struct str path;   /* raw: split with url_segment_next(), then decode (wire/url.h) */
	struct str query;  /* raw, without '?': wire/url.h */
	bool has_body;	   /* there is one, perhaps an empty chunked one */
	uint64_t length;   /* Content-Length, or UINT64_MAX for a chunked body */
	int status;	   /* of the answer, once it was begun; else 0 */
	uint64_t began_ns; /* CLOCK_MONOTONIC, when the head was complete */
	uint64_t bytes_in, bytes_out; /* body bytes so far */
	struct http_server *server;
	/* The app's. */
	const struct http_handler *handler;
	void *user;
};

/* --- the request --- */

/* The whole parsed head. Valid until the app uses another request; its views until `ended`. */
const struct http_head *http_request_head(struct http_request *r);
/* The value of the only header with this name. NULL if there is none or several. */
const struct str *http_request_header(struct http_request *r, const char *name);
bool http_request_is(const struct http_request *r, const char *method);
const struct http_peer *http_request_peer(const struct http_request *r);
bool http_request_is_tls(const struct http_request *r);
/* The client proved who it is: the limits for unknown connections no longer count it. */
void http_request_trust(struct http_request *r);
/*
 * Count the connection and its bodies for this owner from now on, until it ends or another request
 * of it has another owner. The owner must live until then: while it has connections.
 */
void http_request_own(struct http_request *r, struct http_owner *o);
/* The connection closes after this answer, which was not begun yet. */
void http_request_last(struct http_request *r);

/*
 * Ask for the body in one piece, at most `most` bytes after decoding (gzip). The server itself
 * answers 413 above it and 400 for a malformed body. A request without a body gives an empty one.
 * Sends "100 Continue" if the client waits for it. -EALREADY if the body was asked for.
 */
int http_request_buffer(struct http_request *r, size_t most);
/*
 * Ask for the body in pieces, at most `most` bytes (0: any). gzip bodies are decoded unless `raw`.
 * body_end() comes after the last piece, also for an empty body.
 */
int http_request_stream(struct http_request *r, uint64_t most, bool raw);
/* Continue after data() took less than it got. */
void http_request_resume(struct http_request *r);
/* Drop the connection without more bytes: a chunked answer then has no end. `ended` follows. */
void http_request_cut(struct http_request *r);

/* --- the answer: http_answer_header()*, then either http_answer() or a stream --- */

/*
 * Add a header. Content-Length, Transfer-Encoding, Connection and Date are the server's own. A name
 * or value that could end the line turns the answer into a 500. `value` is copied.
 */
void http_answer_header(struct http_request *r, const char *name, struct str value);
void http_answer_headerf(struct http_request *r, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The whole answer. type may be NULL (no content). body is copied. JSON above 4 KiB is compressed
 * for clients that accept gzip. Does nothing if an answer was begun before.
 */
void http_answer(struct http_request *r, int status, const char *type, struct str body);
/* The same, but takes b's memory: for large bodies. b is empty afterwards. */
void http_answer_buf(struct http_request *r, int status, const char *type, struct buf *b);

enum { HTTP_LENGTH_UNKNOWN = -1 };
/*
 * Begin a stream; the head is sent at once. length: exact size of the body, or HTTP_LENGTH_UNKNOWN
 * (chunked). 0, -EALREADY if there is an answer, -EPIPE if the connection is gone.
 */
int http_answer_begin(struct http_request *r, int status, const char *type, int64_t length);
/*
 * Queue bytes, at most LIMIT_HTTP_WRITE per call; all are taken. 0: go on. 1: taken, but the window
 * is full now: stop, room() tells when to go on. -EPIPE: the request is over or ending.
 * -E2BIG: more than the window's excess, because the app ignored 1, or more than the length.
 */
int http_answer_write(struct http_request *r, struct str data);
/* Bytes that are queued and not yet taken by the kernel. */
size_t http_answer_unsent(const struct http_request *r);
/* True if http_answer_write() would return 1. */
bool http_answer_is_full(const struct http_request *r);
/* The stream is complete. A stream with a length that got fewer bytes is cut. */
void http_answer_end(struct http_request *r);

/* Server-sent events and Connect envelopes on a begun stream; returns as http_answer_write(). */
int http_answer_event(struct http_request *r, struct str event, struct str id, struct str data);
int http_answer_envelope(struct http_request *r, unsigned flags, struct str payload);

/*
 * Answer 101 and turn the connection into a tunnel: data() gets raw bytes, http_answer_write()
 * sends raw bytes, http_answer_end() closes after all is sent. `protocol` is the Upgrade header.
 * Headers that were added go out too. 0, -EINVAL if the client did not ask for an upgrade,
 * -EALREADY, -EPIPE.
 */
int http_answer_tunnel(struct http_request *r, struct str protocol);
