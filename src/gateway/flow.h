/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the sandbox.
 *
 *   OWN    the warden looks whose it is, where control groups do not tell
 *   FRONT  it came to the proxy's or the resolver's port: the target is still to be told
 *   LOOK   the first bytes are awaited, as far as the policy needs them
 *   DIAL   the dialer was asked: its answer is awaited
 *   PASS   bytes go both ways
 *   LAST   refused in words: the client reads them and closes
 *
 * The first bytes are only looked at (MSG_PEEK) and stay in the kernel; so does what a slow side
 * has not taken yet: in the sockets, or in a pipe that is borrowed while it is not empty. So an
 * open connection costs this struct and two descriptors.
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
	bool eof;    /* nothing more comes from it */
	bool hup;    /* nothing more comes after what is there */
	bool shut;   /* it was told that nothing more comes */
	bool full;   /* it takes no more for now */
	bool ready;  /* something may be there; else the loop will tell */
	bool quiet;  /* not to be read now, for another reason */
	size_t seen; /* bytes that were looked at and are not enough */
};

/* From one side to the other. */
struct way {
	struct pipe *pipe; /* while it holds something */
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
	struct http_pending pending[HTTP_PENDING]; /* requests without their answer */
	unsigned first, n;
	bool absolute; /* requests to a proxy: the target has the host */
};

struct flow {
	struct gateway *g;
	uint32_t slot;
	enum flow_state state;
	enum flow_front front;
	struct side side[2]; /* by where bytes come from: UP the client, DOWN the world */
	struct way way[2];
	char *name; /* canonical, or NULL: an address */
	struct ip dst;
	uint16_t port;
	struct target from, to; /* the client's socket, as it sees itself */
	bool owned;		/* owner is known, as far as it can be */
	struct sockdiag_owner owner;
	const struct policy_rule *rule;
	bool counted; /* by the meters */
	bool open;    /* it was connected: CONNECT is told before anything else of it */
	bool told;    /* CONNECT was told, so CLOSE will be */
	bool tls_told;
	bool refused; /* DENY or FAIL was told */
	bool looked;  /* proto is what it is */
	bool sniff;   /* it is to be looked at what it speaks, in passing */
	bool silent;  /* it was decided on before its first bytes told all: look again once it is
			 open */
	bool likely;  /* it has begun to speak TLS, HTTP or ssh, and must go on with it */
	enum policy_proto proto;
	uint64_t look_by_ns; /* in PASS: when what was judged is let go, or a likely beginning ended
			      */
	char *first; /* what was let go before it was known what it begins: SNIFF_LINE bytes */
	size_t nfirst;
	struct tls_hello *hello;
	struct http_relay *http;
	struct dns_pending *dns;
	bool dns_waits;
	uint32_t asked;	   /* number of the ask to the dialer that is under way; 0: none */
	struct ip dialled; /* len 0: nothing yet, or the host's proxy */
	bool local;	   /* dialled is one of the host's own */
	uint64_t began_ns, deadline_ns;
	bool greeted; /* SOCKS: the greeting was answered */
};

/* flow.c */
/* What a slow side has not taken waits in the kernel: bound that where there are many, else 0. */
int flow_buffer(const struct gateway *g);
void flow_fit_buffers(const struct gateway *g, int fd);
/* Takes fd. */
void flow_new(struct gateway *g, int fd, const struct target *from, const struct target *to);
/* Look whose it is, once: before anything is told of it, or answered. */
const struct sockdiag_owner *flow_owner(struct flow *f);
/* The warden has looked whose it is. */
void flow_owned(struct gateway *g, uint32_t slot);
/* Decide with what is known, and do what follows. May free f. */
void flow_step(struct flow *f);
/* Let go, and tell. reset: the client sees a reset rather than an end. */
void flow_end(struct flow *f, const char *reason, bool reset);
void flow_end_all(struct gateway *g, const char *reason);
void flow_close_reset(int *fd);
/* One of those that have ended and are not closed yet. */
void flow_close_one(struct gateway *g);

/* flow_refuse.c */
void flow_tell_failed(struct flow *f, const char *reason);
/* The peer said something wrong or is refused: told, answered as the client can understand. */
void flow_deny(struct flow *f, const struct policy_query *q, const struct policy_verdict *v);
void flow_deny_limit(struct flow *f, const struct policy_rule *rule, enum meter_hit hit);
void flow_refuse_http(struct flow *f, int status, const char *why);
/* Allowed, but the world does not let us. */
void flow_fail(struct flow *f, int err);
void flow_query(const struct flow *f, struct policy_query *q);
void flow_deadline(struct flow *f, uint64_t ms);
uint64_t flow_recheck_all(struct gateway *g);
int flow_list(struct gateway *g, uint32_t chan);
void flow_subject(struct flow *f, struct subject *s);
/* Say these bytes to the client and close. */
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
