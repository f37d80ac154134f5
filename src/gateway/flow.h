/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the sandbox.
 *
 *   OWN    the warden searches for the owner, because there are no control groups
 *   FRONT  a connection to the proxy or resolver port: the target is not known yet
 *   LOOK   waits for the first bytes, if the policy needs them
 *   DIAL   waits for the dialer's answer
 *   PASS   passes bytes both ways
 *   LAST   denied: the client reads the reason and closes
 *
 * The front peeks at the first bytes (MSG_PEEK), so they stay in the kernel. Bytes for a slow side
 * wait in the kernel too, in the sockets or in a borrowed pipe. An open connection therefore costs
 * this struct and two descriptors.
 */
#pragma once

#include "gateway/gateway.h"
#include "wire/http1.h"
#include "wire/tls_hello.h"

enum flow_state { FLOW_OWN, FLOW_FRONT, FLOW_LOOK, FLOW_DIAL, FLOW_PASS, FLOW_LAST };
enum flow_front { FRONT_NONE, FRONT_DNS, FRONT_HTTP, FRONT_SOCKS };
enum flow_dir { UP, DOWN }; /* out of the sandbox, into it */

struct pipe {
	struct pipe *next;
	int r, w;
};

struct side {
	struct loop_io io;
	struct flow *f;
	int fd;
	bool eof;    /* its end was read */
	bool hup;    /* it closed; unread bytes may remain */
	bool shut;   /* SHUT_WR was sent to it */
	bool full;   /* its send buffer is full */
	bool ready;  /* it may have bytes; else epoll reports them */
	bool quiet;  /* reading is paused by the HTTP code */
	size_t seen; /* peeked bytes that were not enough to decide */
};

/* From one side to the other. */
struct way {
	struct pipe *pipe; /* NULL while empty */
	size_t held;
	uint64_t bytes;
	bool throttled;
};

enum { HTTP_PENDING = 4, HTTP_PATH_KEPT = 128 };

struct http_pending {
	char method[16];
	char path[HTTP_PATH_KEPT];
	const struct policy_rule *rule;
	bool upgrade;
};

enum http_phase { PHASE_HEAD, PHASE_REST, PHASE_LENGTH, PHASE_CHUNKED, PHASE_RAW };

/* One direction of a plain HTTP connection. */
struct http_way {
	enum http_phase phase, next; /* next: after the rest of the head */
	uint64_t left;
	struct http_body body;
};

struct http_relay {
	struct http_way way[2];
	struct http_pending pending[HTTP_PENDING]; /* requests whose answer is outstanding */
	unsigned first, n;
	bool absolute; /* proxy requests: the host is in the target */
};

struct flow {
	struct gateway *g;
	uint32_t slot;
	enum flow_state state;
	enum flow_front front;
	struct side side[2]; /* source of bytes: UP the client, DOWN the server */
	struct way way[2];
	char *name; /* canonical, or NULL: an address */
	struct ip dst;
	uint16_t port;
	struct target from, to; /* the client's socket: own and peer address */
	bool owned;		/* the search for the owner is over */
	struct sockdiag_owner owner;
	const struct policy_rule *rule;
	bool counted; /* the meters include it */
	bool open;    /* established: CONNECT must be its first event */
	bool told;    /* CONNECT was sent, so CLOSE must follow */
	bool tls_told;
	bool refused; /* DENY or FAIL was sent */
	bool looked;  /* proto is final */
	bool sniff;   /* detect the protocol while passing bytes */
	bool silent;  /* decided before the protocol was known: decide again once open */
	bool likely;  /* began like TLS, HTTP or ssh, and must continue so */
	enum policy_proto proto;
	uint64_t look_by_ns; /* in PASS: deadline for detecting the protocol */
	char *first;	     /* bytes passed on before the protocol was known; at most SNIFF_LINE */
	size_t nfirst;
	struct tls_hello *hello;
	struct http_relay *http;
	struct dns_pending *dns;
	bool dns_waits;
	uint32_t asked;	   /* number of the pending ask to the dialer; 0: none */
	struct ip dialled; /* len 0: none yet, or through the host's proxy */
	bool local;	   /* dialled is an address of the host */
	uint64_t began_ns, deadline_ns;
	bool greeted; /* SOCKS: the greeting was answered */
};

/* flow.c */
/* Size of the kernel buffers per connection if there are many connections, else 0. */
int flow_buffer(const struct gateway *g);
void flow_fit_buffers(const struct gateway *g, int fd);
/* Takes fd. */
void flow_new(struct gateway *g, int fd, const struct target *from, const struct target *to);
/* Find the owner, once, before the first event or answer. */
const struct sockdiag_owner *flow_owner(struct flow *f);
/* The warden found the owner. */
void flow_owned(struct gateway *g, uint32_t slot);
/* Decide by what is known, and act on it. May free f. */
void flow_step(struct flow *f);
/* Close both sides and send the event. reset: the client gets a reset instead of an end. */
void flow_end(struct flow *f, const char *reason, bool reset);
void flow_end_all(struct gateway *g, const char *reason);
void flow_close_reset(int *fd);
/* Close one of the sockets that wait for it. */
void flow_close_one(struct gateway *g);

/* flow_refuse.c */
void flow_tell_failed(struct flow *f, const char *reason);
/* Send the denial as an event, and answer the client in its protocol. */
void flow_deny(struct flow *f, const struct policy_query *q, const struct policy_verdict *v);
void flow_deny_limit(struct flow *f, const struct policy_rule *rule, enum meter_hit hit);
void flow_refuse_http(struct flow *f, int status, const char *why);
/* Allowed, but the target cannot be reached. */
void flow_fail(struct flow *f, int err);
void flow_query(const struct flow *f, struct policy_query *q);
void flow_deadline(struct flow *f, uint64_t ms);
uint64_t flow_recheck_all(struct gateway *g);
int flow_list(struct gateway *g, uint32_t chan);
void flow_subject(struct flow *f, struct subject *s);
/* Send these bytes to the client, then close. */
void flow_last_words(struct flow *f, struct str words);
/* Watch for what the state needs. */
void flow_watch(struct flow *f);

/* flow_dial.c */
void flow_tell_connected(struct flow *f);
void flow_tell_tls(struct flow *f);
/* Ask the dialer for it. May free f. */
void flow_dial(struct flow *f);
/* Takes fd, a connection where the dialer has made one. May free f. */
void flow_answered(struct flow *f, const struct dial_answer *a, int fd);
/* Count it against the limits: false where one is reached, f may be gone. */
bool flow_dial_count(struct flow *f);
/* What it says now is allowed by this rule (NULL: by none yet), which may be another. Likewise. */
bool flow_dial_recount(struct flow *f, const struct policy_rule *rule);

/* flow_look.c: the first bytes */
enum look { LOOK_DONE, LOOK_MORE, LOOK_PART, LOOK_BAD };
/* PART: let go of what was judged, and look on. BAD: it has been refused, f may be gone. */
enum look flow_look(struct flow *f);
/* Pass on what flow_look() has judged, no byte more, and remember it. -1: f is gone. */
int flow_let_go(struct flow *f);
/* What there is, without taking it: a view of a buffer that all share. -EAGAIN where nothing is. */
int flow_peek(struct side *s, struct str *ret);
/* Take what was peeked at. */
void flow_discard(struct side *s, size_t n);
/* Wake only when there is more than this. */
void flow_await_more(struct side *s, size_t than);

/* flow_front.c */
void flow_front(struct flow *f);
/*
 * The answer to whoever asked for a tunnel, once: it speaks only after that. -1: it could not be
 * said.
 */
int flow_front_opened(struct flow *f);

/* flow_pump.c */
/* As much as goes now; at most *limit, which is counted down. -1: f is gone. */
int flow_pump(struct flow *f, enum flow_dir dir, uint64_t *limit);
/* What is in the pipe: 1 where all went, 0 where the other side is full, -1: f is gone. */
int flow_flush(struct flow *f, enum flow_dir dir);
/* How many bytes may go: 0 where it must wait, or f was ended (-1). */
int flow_quota(struct flow *f, enum flow_dir dir, uint64_t *ret);
void flow_count(struct flow *f, enum flow_dir dir, uint64_t n);
void flow_pass(struct flow *f);
/* After passing: a side that has said all is told on; the end where both have; else wait. */
void flow_settle(struct flow *f);
void pipe_put(struct gateway *g, struct pipe *p);

/* flow_http.c */
void flow_http(struct flow *f);
