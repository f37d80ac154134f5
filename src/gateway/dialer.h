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

/* One ask, from its arrival until its answer is sent. */
struct dialling {
	struct dialer *d;
	struct dial_ask ask;
	struct resolve_wait wait;
	struct resolve_answer addrs;
	int at; /* index of the address being tried */
	bool via;
	bool counted_total;			/* against the sandbox's limits */
	bool counted;				/* by this rule, of the policy with this number: */
	const struct policy_rule *counted_rule; /* only compared; its policy may be freed */
	uint64_t counted_policy;
	bool denied; /* an address was denied, for this reason: */
	enum policy_reason reason;
	int err;	   /* why the last address failed, positive */
	unsigned via_step; /* of the conversation with the host's proxy */
	size_t seen;	   /* bytes of the proxy's incomplete answer */
	int fd;
	struct loop_io io;
	uint64_t deadline_ns;	/* 0: none */
	uint64_t policy_number; /* that decided */
	struct dial_answer answer;
	bool answered;
	struct dialling *next; /* next in the queue of answers */
};

struct dialer {
	struct loop loop;
	struct conn warden;
	int front_fd;
	struct loop_io front;
	int route_fd; /* asks the kernel which addresses are the host's own */
	struct policy *policy;
	uint64_t policy_number; /* number of policies so far */
	struct meter total;
	struct meter *meters; /* by rule */
	struct ledger *ledger;
	struct resolver *resolver;
	struct via via;
	struct dialling *asks[LIMIT_DIAL_ASKS]; /* by slot */
	uint32_t nasks, top;
	struct dialling *to_send, **to_send_end;
	struct loop_timer tick, retry;
	struct bucket refusals; /* limits reports of refusals */
	uint64_t unreported;
	bool held;   /* the warden reads no reports: read no asks */
	bool broken; /* the front broke the protocol */
};

/* dialer.c */
/* Takes both descriptors. 0 or -errno. */
int dialer_begin(struct dialer *d, int warden_fd, int front_fd, int route_fd);
/* The first policy holds: read asks. */
int dialer_serve(struct dialer *d);
void dialer_watch(struct dialer *d);
/* Fill the policy query for an ask, without the address. */
void dialling_query(const struct dialling *a, struct policy_query *q);
/* Answer the ask and free a. */
void dialling_done(struct dialling *a);
void dialling_fail(struct dialling *a, int err);
void dialling_deny(struct dialling *a, enum policy_reason reason);
void dialling_limit(struct dialling *a, enum meter_hit hit);

/* dialer_connect.c */
/* Try the resolved addresses one after the other. */
void dialling_next(struct dialling *a);
/* 0: connecting, or a is freed. -1: failed, see a->err. */
int dialling_start(struct dialling *a, const struct ip *ip, uint16_t port);
/* The socket is connected to the target: pass it to the front. */
void dialling_give(struct dialling *a);
/* Count the ask once against the sandbox's limits. False if a limit is reached; a is freed. */
bool dialling_count_total(struct dialling *a);
/* The same, and against the limits of each rule once. */
bool dialling_count(struct dialling *a, const struct policy_rule *rule);
void dialling_deadline(struct dialling *a, uint64_t ms);
/* Close the socket and cancel all waits. */
void dialling_stop(struct dialling *a);

/* dialer_via.c */
enum { DIALLING_VIA_MS = 15000 };
void dialling_via(struct dialling *a);
/* The proxy is connected. */
void dialling_via_greet(struct dialling *a);

/* dialer_control.c */
int dialer_control_begin(struct dialer *d, int fd);
/* Report the result of an ask to the warden: connected, or refused with this reason (one word). */
void dialer_report(const struct dialling *a, const char *refused);
/* The front sent an invalid ask. */
void dialer_report_broken(struct dialer *d);
