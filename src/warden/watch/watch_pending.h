/* SPDX-License-Identifier: Apache-2.0 */
/* The execs of a sandbox that are in progress. watch_pending.c describes the sequence. */
#pragma once

#include "warden/watch/watch_ends.h"

/* An exec has arrived in w->bufs from the listener of c. */
void pending_begin(struct watch_call *c);
/* SIGCHLD: some held tasks may have stopped or died. */
void pending_poll(struct watch *w);
/* The call is about to be freed: its execs produce no more events. */
void pending_forget(struct watch_call *c);
/* All processes were killed: reap the held tasks. */
void pending_reap(struct watch *w);
/* Free the rest. The kernel releases held tasks when the warden ends. */
void pending_done(struct watch *w);
