/* SPDX-License-Identifier: Apache-2.0 */
/* The execs of a sandbox that are in progress. watch_pending.c has the order of events. */
#pragma once

#include "warden/watch/watch_ends.h"

/* One exec has been received in w->bufs from the listener of c. */
void pending_begin(struct watch_call *c);
/* SIGCHLD: some held tasks may have stopped or died. */
void pending_poll(struct watch *w);
/* The call is about to be freed: its execs make no events any more. */
void pending_forget(struct watch_call *c);
/* All were killed: reap those that are held. */
void pending_reap(struct watch *w);
/* Frees what is left. The kernel lets held tasks go when the warden ends. */
void pending_done(struct watch *w);
