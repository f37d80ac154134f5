/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease: the right to change the sandbox as a whole (switch, policy, pause). One client has it
 * at a time, until that client returns it or disconnects. Other clients wait in the order of their
 * requests. The warden does not grant it during a switch, even if the switch's client is gone.
 */
#pragma once

#include "warden/warden.h"

/* Handle MSG_C_LEASE and MSG_C_LEASE_END */
int lease_ask(struct client *c, const struct frame *f, struct err *e);
void lease_end(struct client *c);
/* Refuse a request that changes the sandbox as a whole, unless the client may make it. */
int lease_check(const struct client *c, struct err *e);
/* The pid of the client that has the lease; 0: none. */
int lease_holder(const struct warden *w);
/* A switch has ended: grant the lease to the next client. */
void lease_next(struct warden *w);
