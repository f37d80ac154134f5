/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server on one loop: connections, their deadlines and their memory. It knows nothing
 * about routes or keys: the app (struct http_app) gets each request and answers it through
 * http/request.h.
 *
 *   struct http_server s;
 *   http_server_init(&s, &loop, &app, NULL);
 *   http_listen_add(&s, &listener, fd);          (http/listen.h)
 *   loop_run(&loop);
 *   http_server_done(&s);
 *
 * Every callback of the app runs from the loop, never inside a call that the app itself makes.
 */
#pragma once

#include <sys/socket.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "wire/http1.h"
#include "wire/ip.h"

struct http_server;
struct http_request;
struct http_conn;
struct http_filter_maker;

/* Where a connection comes from. */
struct http_peer {
	bool local;   /* a unix socket, and cred says whose */
	struct ip ip; /* len 0: local */
	uint16_t port;
	struct ucred cred;
};

/* Whose connections these are, as the app says. One owner has at most half of all bodies. */
struct http_owner {
	unsigned conns;
	uint64_t bodies; /* bytes held now */
};

struct http_app {
	/*
	 * A request has come, without its body. The app must answer, or set r->handler and answer
	 * later. To get the body, call http_request_buffer() or http_request_stream(), now or
	 * later.
	 */
	void (*start)(struct http_request *r);
	/*
	 * The server refuses something itself, such as a malformed head (400) or a body that is too
	 * large (413). Append the body of the answer to out and return its content type. `why` is
	 * plain English. r is NULL if no request could be read. Optional: the default is plain
	 * text.
	 */
	const char *(*refuse)(struct http_server *s, struct http_request *r, int status,
			      const char *why, struct buf *out);
	/* The limits per address do not count this peer (a trusted proxy). Optional. */
	bool (*is_exempt)(struct http_server *s, const struct http_peer *peer);
};

/* Zero means the default. Times in milliseconds, sizes in bytes. */
struct http_limits {
	unsigned conns;		   /* 16,384 connections */
	unsigned unknown;	   /* 2,048 connections without http_request_trust() */
	unsigned unknown_per_addr; /* 256 of those from one address */
	unsigned per_addr;	   /* 4,096 connections of one address, known or not */
	uint64_t memory; /* 256 MiB for all buffers; above it: no accept, idle ones close */
	uint64_t bodies; /* 64 MiB for all buffered bodies; above it they wait, then 503 */
	unsigned handshake_ms, first_ms, idle_ms, head_ms, body_ms, stall_ms, wait_ms, linger_ms,
		ping_ms, full_ms;
};

/* Why connections or requests were refused; for metrics. */
enum http_refused {
	HTTP_REFUSED_CONNS,   /* too many connections, or too many of one address */
	HTTP_REFUSED_MEMORY,  /* the memory limit */
	HTTP_REFUSED_FILES,   /* no descriptor was free (EMFILE) */
	HTTP_REFUSED_BAD,     /* malformed */
	HTTP_REFUSED_TIMEOUT, /* too slow */
	HTTP_REFUSED_COUNT
};

struct http_counters {
	uint64_t accepted, requests, refused[HTTP_REFUSED_COUNT];
	unsigned conns, unknown, idle; /* now */
};

enum { HTTP_ADDR_SLOTS = 1024 };

struct http_server {
	struct loop *loop;
	const struct http_app *app;
	void *user; /* the app's */
	struct http_limits limits;
	struct http_counters counters;
	uint64_t memory, bodies; /* bytes held now */
	bool draining, retiring;
	/* internal */
	struct http_conn *all;
	struct http_conn *idle_first, *idle_last; /* the oldest first */
	struct http_conn *work_first, *work_last; /* run by `kick` */
	unsigned full;				  /* exchanges that wait for room for a body */
	unsigned streams;
	unsigned shakes; /* steps of handshakes since the last kick */
	struct http_listener *listeners;
	bool resting; /* the listeners are out of the loop */
	struct loop_timer kick, rest;
	int spare_fd;			    /* given up to accept and refuse one client at EMFILE */
	uint16_t per_addr[HTTP_ADDR_SLOTS]; /* unknown ones */
	uint16_t all_per_addr[HTTP_ADDR_SLOTS];
	uint64_t addr_key;
	struct http_head head; /* scratch: the last head that was parsed */
	struct http_request *head_of;
	char *scratch; /* LIMIT_HTTP_IN bytes for reading */
};

/* limits may be NULL. 0 or -errno. */
int http_server_init(struct http_server *s, struct loop *l, const struct http_app *app,
		     const struct http_limits *limits);
/* Close everything at once. Calls `ended` of every request that is not over. */
void http_server_done(struct http_server *s);
/*
 * Take a connected stream socket, also one that another front handed over. Owns fd, also on
 * failure. maker may be NULL (plain). 0 or -errno.
 */
int http_server_adopt(struct http_server *s, int fd, const struct http_filter_maker *maker);
/* Stop accepting; close idle connections; answers from now on end their connection. */
void http_server_drain(struct http_server *s);
/*
 * Hand over idle plain connections that hold no bytes: give() owns each descriptor. Returns their
 * number.
 */
unsigned http_server_give_idle(struct http_server *s,
			       void (*give)(void *user, int fd, bool trusted), void *user);
/* Take a plain connection that another server gave. Owns fd. trusted: as that one told. */
int http_server_inherit(struct http_server *s, int fd, bool trusted);
/*
 * Stop accepting, because another server does. Plain connections stay open until they are given;
 * those with TLS cannot be given and end after their next answer.
 */
void http_server_retire(struct http_server *s);
