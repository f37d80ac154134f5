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
 * One thread, one loop. What it holds for others is bounded: LIMIT_NET_* in base/limits.h. Data
 * of connections is never copied here to wait: it waits in the kernel (flow.h).
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

/* As enum net_fd of the driver. */
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
	struct asker asker; /* of the dialer */
	struct policy *policy;
	struct ledger *ledger;
	struct meter total;
	struct meter *meters; /* by rule */
	struct pool *pool;
	struct flow *flows[LIMIT_NET_FLOWS]; /* by slot */
	uint32_t nflows, top, *free_slots, nfree;
	uint32_t nwaiting, nthrottled; /* of them with a deadline; of these for their rate */
	struct loop_timer tick;
	struct pipe *pipes; /* that are empty */
	int npipes;
	struct dns_pending *queries[LIMIT_NET_QUERIES]; /* by slot, behind those of flows */
	uint32_t nqueries;
	struct bucket searches;	  /* for owners that are not where they should be */
	struct bucket dns_events; /* how many queries are told */
	uint64_t dns_untold;
	bool ask;  /* the warden tells whose a connection is */
	bool news; /* some that is to be told when nothing else is to do */
	int closing[LIMIT_NET_CLOSING], nclosing; /* ended connections, likewise */
	struct loop_timer rest;			  /* from new connections, where there is no room */
	bool held; /* the warden takes no more events: no new connections */
};

/* One end of a connection. */
struct target {
	struct ip ip;
	uint16_t port;
};

/* What an event is about. */
struct subject {
	const struct sockdiag_owner *owner; /* or NULL */
	struct str name;
	const struct ip *addr; /* or NULL */
	uint16_t port;
	struct str rule;
};

/*
 * When the warden hears of it, which wakes it: a refusal before the client does, so that it is in
 * the result of a call that ends with it; a connection when its first bytes are on their way, and
 * soon, for the process is looked for; an end whenever there is other news, or after 5 ms.
 */
enum event_when { EVENT_NOW, EVENT_SOON, EVENT_LATER };

/* control.c */
int control_begin(struct gateway *g, int fd);
/* An event is begun, filled by field_put*() to &g->warden.out, and ended. */
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
 * One query, by whoever. send gets the answer, now or later, with the same ctx; unless it is
 * cancelled. *ret: the query that waits, NULL where it has been answered.
 */
struct dns_pending;
typedef void dns_send(void *ctx, struct str answer);
int dns_ask(struct gateway *g, struct str msg, bool tcp, const struct sockdiag_owner *owner,
	    dns_send *send, void *ctx, struct dns_pending **ret);
void dns_cancel(struct dns_pending *p);
void dns_answered(struct gateway *g, const struct dial_answer *a);

/* accept.c */
int accept_begin(struct gateway *g);
/* Our own address, as the sandbox sees it. */
struct ip gateway_ip(int family);
void accept_hold(struct gateway *g, bool hold);

/* Whose socket it was; a zeroed owner where it is gone. */
struct sockdiag_owner whose(struct gateway *g, int protocol, const struct target *from,
			    const struct target *to);
