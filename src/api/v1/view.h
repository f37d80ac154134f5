/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request that follows a call. Calls of the native API are detached: they belong to no
 * connection, so a client that lost its connection joins again.
 *
 *   view_start or view_join ── started ── output* ── ended (once, last)
 *
 * A sink says what becomes of that: an answer at the start, a result, a stream of events, plain
 * bytes, or a WebSocket. A client that reads slowly stops the command, as a full pipe would.
 */
#pragma once

#include "api/v1/v1.h"
#include "link/decode.h"

struct view;

struct view_sink {
	/* The number and offset of the view are set. Optional. */
	void (*started)(struct view *w, const struct call_started *s);
	/* 0: taken. 1: taken, but there is no more room until view_room(). */
	int (*output)(struct view *w, enum call_stream stream, struct str data);
	void (*denied)(struct view *w, const struct call_denied *d);
	/* Input has room. Optional. */
	void (*room)(struct view *w);
	/* The last one. r is NULL if it failed, and why has the reason. */
	void (*ended)(struct view *w, const struct call_result *r, const struct err *why);
};

struct view {
	struct v1 *v;
	struct box_call call;
	struct link_ask ask;
	const struct view_sink *sink;
	uint32_t number;
	uint64_t offset; /* behind the last output */
	bool existing;	 /* the call was there before the request */
	bool joined;	 /* the request did not start it */
	bool writes;	 /* it wants to write to stdin */
	size_t held[2];	 /* output that was taken, and of which the warden is not told */
	int status;	 /* of view_answer_row() */
	struct loop_timer timer;
	/* of sinks */
	struct buf out[2];
	struct buf in; /* input that the warden has not taken */
	bool eof;      /* behind it */
	uint64_t cut[2], left;
	bool only[2], begun;
	bool late; /* the time to wait is over, and the warden has not answered */
	struct http_ws *ws;
};

/* A view as v->own. NULL: refused. */
struct view *view_new(struct v1 *v, const struct view_sink *sink);
int view_start(struct view *w, struct box *b, const struct call_spec *spec);
/* The call of the path's {sub}: its number, or the caller's id. */
void view_join(struct view *w, struct box *b, uint64_t offset, bool writes, uint64_t window);
void view_room(struct view *w);
/* Send w->in, as far as there is room, and the end behind it. */
void view_flush(struct view *w);
/* Answer with the call as it is listed, and leave it. */
void view_answer_row(struct view *w, int status);
/* Answer 202 with the call if it has not ended after this time; it goes on. */
void view_wait_at_most(struct view *w, uint64_t ms);
/* Ask for its row; then `then`. */
void view_ask_row(struct view *w, struct box *b, uint32_t number, const char *call_id,
		  int (*then)(struct link_ask *a, const struct frame *f));
/* {sub} as a number; 0: it is the caller's id. */
uint32_t view_number(const struct v1 *v);

/* Sinks: view_sse.c, view_collect.c, view_raw.c */
extern const struct view_sink sink_sse, sink_collect, sink_raw, sink_row;
/* The client wants events: Accept: text/event-stream. */
bool view_wants_events(const struct v1 *v);
/* The number of "INT" or "SIGINT"; 0: unknown. name may be NULL. */
int view_signal(const char *name);
/* Members of a result. */
void view_put_result(struct json *j, const struct call_result *r);
/* "text" or "b64" of some output. */
void view_put_bytes(struct json *j, struct str data);
