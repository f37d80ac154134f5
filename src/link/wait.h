/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking forms of link.h, for operations and the command line. Each function runs w->loop until
 * the answer, the waiter's deadline (TIMEOUT) or its cancel (code "cancelled"). Never call them
 * from a callback of that loop.
 *
 * Each function also has its own deadline: a warden that does not answer is an error.
 */
#pragma once

#include "link/decode.h"
#include "loop/wait.h"

/* link_open() on w->loop. Retries for one second if the warden has too many clients. */
int link_connect(struct waiter *w, const struct state *s, const char *id, struct link **ret,
		 struct err *e);

int link_info(struct link *l, struct waiter *w, struct sandbox_status *ret, struct err *e);

/*
 * Take the lease: the right to change the sandbox as a whole. Waits for other clients until the
 * waiter's deadline, then CONFLICT, code sandbox.busy. A warden of version 2 has no lease:
 * NOT_FOUND, code lease.none.
 */
int link_lease(struct link *l, struct waiter *w, struct err *e);
void link_lease_end(struct link *l);

/* MSG_C_SWITCH; needs the lease. */
struct link_switch {
	const char *seal;	 /* id of the layer made from the changes; NULL: drop the changes */
	char (*layers)[ID_SIZE]; /* layers below, topmost first */
	size_t nlayers;
	bool force;		     /* end running calls first */
	bool alone;		     /* refuse while calls run */
	const char *snapshot, *name; /* for the trace; may be NULL */
};

struct link_switched {
	unsigned sealed; /* 0: nothing had changed, 1: the changes became a layer, 2: a copy did */
	uint64_t duration_us, freeze_us;
};

int link_switch(struct link *l, struct waiter *w, const struct link_switch *how,
		struct link_switched *ret, struct err *e);
/* *ret_cut: number of connections that the new policy ended. Needs the lease. */
int link_policy(struct link *l, struct waiter *w, struct str compiled, uint64_t *ret_cut,
		struct err *e);

enum link_order { LINK_PAUSE, LINK_RESUME, LINK_EXTEND, LINK_EXPIRE_AT };
/* ms: for EXTEND the time to live, for EXPIRE_AT the real time; 0: no end. PAUSE needs the lease.
 * *ret: the state afterwards. */
int link_order(struct link *l, struct waiter *w, enum link_order order, uint64_t ms,
	       struct sandbox_status *ret, struct err *e);

/* Wait until every event up to now is in the trace; return the head of the trace. */
int link_sync_trace(struct link *l, struct waiter *w, uint64_t *ret_seq, char ret_hash[65],
		    struct err *e);

/* Wait until the sandbox is gone. unclaimed: only if it has no owner, else CONFLICT. */
int link_destroy(struct link *l, struct waiter *w, bool unclaimed, struct err *e);

/* The same without a link, until the warden is gone. Kills a warden that does not answer. */
int link_end_sandbox(struct waiter *w, const struct state *s, const char *id, struct err *e);

/* Lists. fn returns non-zero to stop. */
int link_ps(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_process *p),
	    void *ctx, struct err *e);
int link_flows(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_flow *f),
	       void *ctx, struct err *e);
/* call 0: list all calls. */
int link_calls(struct link *l, struct waiter *w, uint32_t call,
	       int (*fn)(void *ctx, const struct link_call_row *r), void *ctx, struct err *e);

/* Find one call by its number or, if that is 0, the newest call with the caller's id. NOT_FOUND,
 * code call.not_found. A warden of version 2 keeps no calls: NOT_FOUND, code call.none. */
int link_call_find(struct link *l, struct waiter *w, uint32_t call, const char *call_id,
		   struct link_call_row *ret, struct err *e);

/* A connected socket to a port inside; the caller owns it. */
int link_dial_wait(struct link *l, struct waiter *w, uint16_t port, int *ret_fd, struct err *e);
