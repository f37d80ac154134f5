/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-gateway: the one way out of one sandbox. It runs as two processes.
 *
 *   program inside --any TCP, DNS--> sockets made inside --> front --asks--> dialer --> the world
 *                                                            |  ^  <-sockets-  |  ^
 *                                         events, in order   v  | policy,      v  | policy
 *                                                           warden            warden
 *
 * This is the front. It parses what the sandbox and the world send, decides by the policy, and
 * passes bytes. It is jailed (jail.h): namespaces of its own, an empty root, no capabilities, a
 * list of system calls. Its network namespace is empty, and it can neither make nor connect a
 * socket. All that it has is what it was given: sockets of the sandbox, and established connections
 * from the dialer (dialer.h), which decides by the policy too.
 *
 * One thread, one loop. Everything that a peer can make it keep is bounded by LIMIT_NET_* in
 * base/limits.h. Data of a slow connection waits in the kernel, not here (flow.h).
 */
#pragma once

#include "base/clock.h"
#include "gateway/addresses.h"
#include "gateway/ask.h"
#include "gateway/meters.h"
#include "loop/conn.h"
#include "policy/policy.h"
#include "sys/net/sockdiag.h"
#include "wire/gateway_proto.h"

struct flow;
struct gateway;

/* The same order as enum net_fd of the driver. */
enum { SOCK_DIAG, SOCK_TCP4, SOCK_UDP4, SOCK_TCP6, SOCK_UDP6, SOCKS };

struct inlet {
	struct loop_io io;
	struct gateway *g;
	int family;
};

struct gateway {
	struct loop loop;
	struct conn warden;
	int fds[SOCKS];
	struct inlet tcp[2], udp[2];
	struct asker asker; /* asks the dialer */
	struct policy *policy;
	struct ledger *ledger;
	struct meter total;
	struct meter *meters; /* by rule */
	struct addresses *addresses;
	struct flow *flows[LIMIT_NET_FLOWS]; /* by slot */
	uint32_t nflows, top, *free_slots, nfree;
	uint32_t nwaiting,
		nthrottled; /* flows with a deadline; of these, flows stopped by a rate limit */
	struct loop_timer tick;
	struct pipe *pipes; /* empty ones, for reuse */
	int npipes;
	struct dns_pending *queries[LIMIT_NET_QUERIES]; /* by slot; slots of flows come first */
	uint32_t nqueries;
	struct bucket searches;	  /* full searches for a socket's owner */
	struct bucket dns_events; /* query events */
	uint64_t dns_untold;
	bool ask;				  /* the warden finds the owner of a connection */
	bool news;				  /* events are queued; send them when idle */
	int closing[LIMIT_NET_CLOSING], nclosing; /* sockets to close when idle */
	struct loop_timer rest;			  /* accepting rests until then */
	bool held;				  /* the warden reads no events: accept nothing */
};

/* One end of a connection. */
struct target {
	struct ip ip;
	uint16_t port;
};

/* The subject of an event. */
struct subject {
	const struct sockdiag_owner *owner; /* or NULL */
	struct str name;
	const struct ip *addr; /* or NULL */
	uint16_t port;
	struct str rule;
};

/*
 * When an event is sent, which wakes the warden:
 * NOW    a denial goes out before the client sees it, so the call's result contains it
 * SOON   a connection, after its first bytes; soon, because the warden searches for its process
 * LATER  a close, together with the next event or after 5 ms
 */
enum event_when { EVENT_NOW, EVENT_SOON, EVENT_LATER };

/* control.c */
int control_begin(struct gateway *g, int fd);
/* Write an event: begin, field_put*() to &g->warden.out, end. */
int event_begin(struct gateway *g, enum gw_kind kind, uint32_t slot, const struct subject *s,
		size_t *ret_at);
void event_end(struct gateway *g, size_t at, enum event_when when);
void event_text(struct gateway *g, uint16_t tag, struct str text);
void event_num(struct gateway *g, uint16_t tag, uint64_t value);

/* policy_set.c */
int policy_set(struct gateway *g, struct str compiled, uint64_t *ret_cut);
struct meter *meter_of(struct gateway *g, const struct policy_rule *rule);

/* dns.c */
int dns_begin(struct gateway *g);
/*
 * Answer one query. Calls send with the answer and ctx, now or later, unless the query is
 * cancelled. *ret: the waiting query, or NULL if send was called already.
 */
struct dns_pending;
typedef void dns_send(void *ctx, struct str answer);
int dns_ask(struct gateway *g, struct str msg, bool tcp, const struct sockdiag_owner *owner,
	    dns_send *send, void *ctx, struct dns_pending **ret);
void dns_cancel(struct dns_pending *p);
void dns_answered(struct gateway *g, const struct dial_answer *a);

/* accept.c */
int accept_begin(struct gateway *g);
/* The gateway's address inside the sandbox. */
struct ip gateway_ip(int family);
void accept_hold(struct gateway *g, bool hold);

/* The owner of a socket; all zero if the socket is gone. */
struct sockdiag_owner whose(struct gateway *g, int protocol, const struct target *from,
			    const struct target *to);
