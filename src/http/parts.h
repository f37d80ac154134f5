/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and their exchanges; internal to src/http.
 *
 * A connection is small while it is idle. An exchange is one request with its answer; it exists
 * from the last byte of the head until `ended`. http_conn_run() is the only place that reads,
 * writes, calls the app or frees: it runs for events of the loop, and for connections that the app
 * touched from outside (http_conn_touch()), never inside a call of the app.
 */
#pragma once

#include "base/limits.h"
#include "http/body_in.h"
#include "http/body_out.h"
#include "http/filter.h"
#include "http/request.h"

enum http_state {
	HTTP_HANDSHAKE,
	HTTP_IDLE,
	HTTP_HEAD,
	HTTP_ACTIVE, /* there is an exchange: BODY, WAIT, SEND, STREAM or TUNNEL of http_phase */
	HTTP_LINGER,
	HTTP_CLOSED,
	HTTP_STATES
};

/* What an exchange waits for; decides its deadline. */
enum http_phase { HTTP_BODY, HTTP_FULL, HTTP_WAIT, HTTP_SEND, HTTP_STREAM, HTTP_TUNNEL };

enum http_in_mode {
	HTTP_IN_UNASKED, /* the app did not ask for the body yet */
	HTTP_IN_BUFFER,
	HTTP_IN_STREAM,
	HTTP_IN_DROP, /* the answer is complete: the rest is dropped to keep the connection */
	HTTP_IN_DONE,
};

enum http_out_mode {
	HTTP_OUT_OPEN, /* no answer yet */
	HTTP_OUT_STREAM,
	HTTP_OUT_ENDED, /* the answer is complete, but perhaps not sent */
};

struct http_exchange {
	struct http_request r; /* first: the app has its address */
	struct http_conn *c;
	struct buf text; /* of the head */
	/* in */
	enum http_in_mode in_mode;
	struct http_body_in in;
	struct str piece; /* decoded, not taken by the app; the connection's input must stay */
	struct buf body;
	size_t counted; /* bytes of body that the server's limit counts */
	bool paused;	/* the app took less than it was given */
	bool full_in;	/* waits for room under the server's limit for bodies */
	bool owes_continue;
	uint64_t asked_ns, in_ns; /* when the body was asked for; last progress */
	/* out */
	enum http_out_mode out_mode;
	struct buf fields; /* headers of the answer */
	int fields_err;
	struct http_body_out out;
	size_t window;
	bool keep;     /* the connection stays open afterwards */
	bool full_out; /* the app was told to stop */
	int minor;
	bool tunnel, refused, is_head, wants_gzip, told_gone;
	uint64_t out_ns; /* last progress */
	enum http_end why;
};

struct http_conn {
	struct http_server *server;
	struct loop_io io;
	struct loop_timer timer;
	struct http_filter *filter;
	struct http_exchange *x;
	struct http_conn *prev, *next;		 /* all */
	struct http_conn *idle_prev, *idle_next; /* the oldest first */
	struct http_conn *work_prev, *work_next;
	int fd;
	uint8_t state; /* enum http_state */
	bool first;    /* no request yet */
	bool trusted;  /* no limit for unknown clients counts it */
	bool counted;  /* the limit per address counts it */
	bool queued, entered, is_idle, is_tls;
	bool dry;     /* reading would block; an event clears it */
	bool blocked; /* writing would block; an event clears it */
	bool eof;     /* the client's end was read */
	bool hup;     /* the client's end was announced, perhaps behind unread bytes */
	uint16_t addr_slot;
	uint32_t dropped; /* bytes, in LINGER */
	uint64_t since_ns;
	uint64_t charged;
	struct buf in;
	size_t taken; /* bytes of in that were used */
	size_t seen;  /* bytes behind them in which the head was sought */
	struct http_peer peer;
	struct http_owner *owner; /* http_request_own(); NULL: none */
};

/* --- conn.c --- */
struct http_conn *http_conn_new(struct http_server *s, int fd, struct http_filter *filter);
/* Do all that can be done now. Frees c if it is closed. */
void http_conn_run(struct http_conn *c);
/* The app changed something: run c soon, unless it runs already. */
void http_conn_touch(struct http_conn *c);
/* Close the socket. `ended` and freeing follow in http_conn_run(). */
void http_conn_close(struct http_conn *c, enum http_end why);
void http_conn_set_state(struct http_conn *c, enum http_state state);
enum http_phase http_exchange_phase(const struct http_exchange *x);
/* Answer with an error of our own, or close if an answer was begun. */
void http_conn_refuse(struct http_conn *c, int status, const char *why);
/* NULL if memory ran out. */
struct http_exchange *http_exchange_new(struct http_conn *c);
/* The exchange is over: tell the app and free it. */
void http_exchange_end(struct http_conn *c, enum http_end why);

/* --- conn_read.c --- */
/* Read and use input. True if something changed. */
bool http_conn_read(struct http_conn *c);
bool http_conn_wants_input(const struct http_conn *c);

/* --- conn_write.c --- */
bool http_conn_write(struct http_conn *c);

/* --- deadline.c --- */
/* When the state of c ends; 0: never. */
uint64_t http_conn_deadline(const struct http_conn *c);
/* That time is reached. */
void http_conn_expire(struct http_conn *c);

/* --- answer.c --- */
/* Queue the head. 0 or -errno. */
int http_answer_head(struct http_exchange *x, int status, const char *type, int64_t length);

/* --- date.c --- */
enum { HTTP_DATE = sizeof "Sun, 06 Nov 1994 08:49:37 GMT" };
/* The time now as in RFC 9110 5.6.7. */
void http_date(char out[HTTP_DATE]);

/* --- server.c --- */
bool http_server_may_accept(const struct http_server *s);
/* A descriptor that serves no purpose but to be given up. -1 and errno. */
int http_server_spare(const struct http_server *s);
/* Accept again if accepting was stopped and is allowed now. */
void http_server_resume(struct http_server *s);
/* Room for bodies came free: go on with those that wait for it. */
void http_server_full_wake(struct http_server *s);
/* The limits for unknown clients count c no longer. */
void http_server_forget(struct http_conn *c);
/* c is closed: no limit counts it any more. */
void http_server_leave(struct http_conn *c);

static inline struct http_exchange *http_exchange_of(const struct http_request *r)
{
	return container_of(r, struct http_exchange, r);
}
