/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialer: the only process of a gateway that can connect to anything.
 *
 *   front --asks, fixed size--> dialer --DNS, connect, the host's proxy--> the world
 *         <--established sockets--        |
 *                                         v reports, policy
 *                                       warden
 *
 * The front parses what the sandbox sends, so the dialer takes the front for hostile. The dialer
 * decides every ask by the policy itself: the name and the port, then each address that it has
 * resolved itself. It passes a socket to the front only when the connection is established: an
 * unconnected socket could be connected to any other address by MSG_FASTOPEN.
 *
 * The dialer reads asks, DNS answers and the first lines of the host's proxy, nothing else.
 */
#pragma once

#include "gateway/meters.h"
#include "gateway/resolve.h"
#include "gateway/via.h"
#include "loop/conn.h"
#include "wire/dial_ask.h"
#include "wire/gateway_proto.h"

/* One ask, from when it is read until its answer is sent. */
struct dialling {
	struct dialer *d;
	struct dial_ask ask;
	struct resolve_wait wait;
	struct resolve_answer addrs;
	int at; /* the address that is tried */
	bool via;
	bool counted_total;			/* against the sandbox's limits */
	bool counted;				/* by this rule, of the policy with this number: */
	const struct policy_rule *counted_rule; /* to be compared; its policy may be gone */
	uint64_t counted_policy;
	bool denied; /* an address was, for this reason: */
	enum policy_reason reason;
	int err;	   /* why the last address failed, positive */
	unsigned via_step; /* of the conversation with the host's proxy */
	size_t seen;	   /* bytes of the proxy's answer that are not enough */
	int fd;
	struct loop_io io;
	uint64_t deadline_ns;	/* 0: none */
	uint64_t policy_number; /* that decided */
	struct dial_answer answer;
	bool answered;
	struct dialling *next; /* whose answer is to be sent after this one */
};

struct dialer {
	struct loop loop;
	struct conn warden;
	int front_fd;
	struct loop_io front;
	int route_fd; /* asks the kernel which addresses are the host's own */
	struct policy *policy;
	uint64_t policy_number; /* how many there were */
	struct meter total;
	struct meter *meters; /* by rule */
	struct ledger *ledger;
	struct resolver *resolver;
	struct via via;
	struct dialling *asks[LIMIT_DIAL_ASKS]; /* by slot */
	uint32_t nasks, top;
	struct dialling *to_send, **to_send_end;
	struct loop_timer tick, retry;
	struct bucket refusals; /* how many are reported */
	uint64_t unreported;
	bool held;   /* the warden takes no more reports: no new asks */
	bool broken; /* the front broke the protocol */
};

/* dialer.c */
/* Takes both descriptors. 0 or -errno. */
int dialer_begin(struct dialer *d, int warden_fd, int front_fd, int route_fd);
/* The first policy holds: read asks. */
int dialer_serve(struct dialer *d);
void dialer_watch(struct dialer *d);
/* What the policy is asked about it, but for the address. */
void dialling_query(const struct dialling *a, struct policy_query *q);
/* The answers. Each ends the ask; a is gone afterwards. */
void dialling_done(struct dialling *a);
void dialling_fail(struct dialling *a, int err);
void dialling_deny(struct dialling *a, enum policy_reason reason);
void dialling_limit(struct dialling *a, enum meter_hit hit);

/* dialer_connect.c */
/* The name was resolved, or there is none: try one address after the other. */
void dialling_next(struct dialling *a);
/* 0 where it is under way, a may be gone; -1: a->err. */
int dialling_start(struct dialling *a, const struct ip *ip, uint16_t port);
/* The socket is connected to the target: pass it to the front. */
void dialling_give(struct dialling *a);
/* Count it against the sandbox's limits, once. False if one is reached: a is gone. */
bool dialling_count_total(struct dialling *a);
/* The same, and against the limits of each rule once. */
bool dialling_count(struct dialling *a, const struct policy_rule *rule);
void dialling_deadline(struct dialling *a, uint64_t ms);
/* Close the socket and wait for nothing. */
void dialling_stop(struct dialling *a);

/* dialer_via.c */
enum { DIALLING_VIA_MS = 15000 };
void dialling_via(struct dialling *a);
/* The proxy is connected. */
void dialling_via_greet(struct dialling *a);

/* dialer_control.c */
int dialer_control_begin(struct dialer *d, int fd);
/* Tell the warden what became of an ask: connected, or refused for this reason (a word). */
void dialer_report(const struct dialling *a, const char *refused);
/* The front sent something that is no ask. */
void dialer_report_broken(struct dialer *d);
