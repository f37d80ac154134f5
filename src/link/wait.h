/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same as link.h, blocking, for operations and the command line: each runs w->loop until the
 * answer, the waiter's deadline, or its cancel. TIMEOUT, or code "cancelled". Never from a callback
 * of that loop.
 *
 * Each has a deadline of its own beside the waiter's: a warden that does not answer is an error.
 */
#pragma once

#include "link/decode.h"
#include "loop/wait.h"

/* link_open() on w->loop, again for a second where the warden has too many clients. */
int link_connect(struct waiter *w, const struct state *s, const char *id, struct link **ret,
		 struct err *e);

int link_info(struct link *l, struct waiter *w, struct sandbox_status *ret, struct err *e);

/*
 * The right to change the sandbox as a whole. Waits for other clients until the waiter's deadline,
 * then CONFLICT, code sandbox.busy. A warden of version 2 has none: NOT_FOUND, code lease.none.
 */
int link_lease(struct link *l, struct waiter *w, struct err *e);
void link_lease_end(struct link *l);

/* MSG_C_SWITCH: needs the lease. */
struct link_switch {
	const char *seal; /* id of the layer that the changes become; NULL: they are dropped */
	char (*layers)[ID_SIZE]; /* below, topmost first */
	size_t nlayers;
	bool force;		     /* end running calls first */
	bool alone;		     /* refused while calls run */
	const char *snapshot, *name; /* for the trace; may be NULL */
};

struct link_switched {
	unsigned sealed; /* 0: nothing had changed, 1: the changes are a layer, 2: a copy is */
	uint64_t duration_us, freeze_us;
};

int link_switch(struct link *l, struct waiter *w, const struct link_switch *how,
		struct link_switched *ret, struct err *e);
/* *ret_cut: connections that the new policy ended. Needs the lease. */
int link_policy(struct link *l, struct waiter *w, struct str compiled, uint64_t *ret_cut,
		struct err *e);

enum link_order { LINK_PAUSE, LINK_RESUME, LINK_EXTEND, LINK_EXPIRE_AT };
/* ms: of EXTEND the time to live, of EXPIRE_AT the real time; 0: no end. PAUSE needs the lease.
 * *ret is the state that it led to. */
int link_order(struct link *l, struct waiter *w, enum link_order order, uint64_t ms,
	       struct sandbox_status *ret, struct err *e);

/* Waits until every event up to now is in the trace; its head. */
int link_sync_trace(struct link *l, struct waiter *w, uint64_t *ret_seq, char ret_hash[65],
		    struct err *e);

/* Until the warden says that all is gone. unclaimed: only while it has no owner, else CONFLICT. */
int link_destroy(struct link *l, struct waiter *w, bool unclaimed, struct err *e);

/* Lists. fn: non-zero stops. */
int link_ps(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_process *p),
	    void *ctx, struct err *e);
int link_flows(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_flow *f),
	       void *ctx, struct err *e);
/* call 0: all of them. */
int link_calls(struct link *l, struct waiter *w, uint32_t call,
	       int (*fn)(void *ctx, const struct link_call_row *r), void *ctx, struct err *e);

/* One call, by its number or, where that is 0, the newest with the caller's id. NOT_FOUND, code
 * call.not_found. A warden of version 2 knows none: NOT_FOUND, code call.none. */
int link_call_find(struct link *l, struct waiter *w, uint32_t call, const char *call_id,
		   struct link_call_row *ret, struct err *e);

/* A connected socket to a port inside; the caller's. */
int link_dial_wait(struct link *l, struct waiter *w, uint16_t port, int *ret_fd, struct err *e);
