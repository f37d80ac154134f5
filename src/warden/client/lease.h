/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease: the right to change the sandbox as a whole (switch, policy, pause). One client has
 * it at a time, until it gives it back or its connection ends. Others wait in the order in which
 * they asked. It is not given while a switch runs, also one whose client is gone.
 */
#pragma once

#include "warden/warden.h"

/* MSG_C_LEASE and MSG_C_LEASE_END */
int lease_ask(struct client *c, const struct frame *f, struct err *e);
void lease_end(struct client *c);
/* Refuse a request that changes the sandbox as a whole unless the client may make it. */
int lease_check(const struct client *c, struct err *e);
/* The pid of the client that has it; 0: nobody. */
int lease_holder(const struct warden *w);
/* A switch has ended. */
void lease_next(struct warden *w);
