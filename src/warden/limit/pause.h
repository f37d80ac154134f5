/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing a sandbox, and the times after which it ends or pauses by itself.
 *
 * Paused, no process inside runs, init neither: the control group is frozen as a whole. Where
 * there is no group (rootless without delegation) every process but init is stopped by a
 * signal, which processes inside may notice and undo. All clocks stop: time limits of calls,
 * the time to live and the idle time. A call that is asked for resumes the sandbox.
 *
 * The time to live counts from the creation, from cay extend, or from a resume after it had
 * passed. The idle time counts while no call runs; processes left behind are no activity.
 */
#pragma once

#include "warden/warden.h"

/* Legal in either state; 0 where it is so already. reason: for the trace. */
int pause_enter(struct warden *w, const char *reason, struct err *e);
int pause_leave(struct warden *w, const char *reason, struct err *e);

/* A field of MSG_C_BUILD: 0 taken, 1 not one of ours, -EBADMSG. */
int expiry_take(struct warden *w, struct field f);
/* The sandbox is ready. */
void expiry_open(struct warden *w);
void expiry_close(struct warden *w);
/* The number of running calls has changed. */
void expiry_activity(struct warden *w);
/* A new time to live from now on; 0: none. */
void expiry_extend(struct warden *w, uint64_t ttl_ms);
/* The same until a moment of the real clock; 0: none. The time to live that it gives. */
uint64_t expiry_until(struct warden *w, uint64_t at_ms);
/* The timer of the time to live was set or stopped: note when it will be over. */
void expiry_note(struct warden *w);
/* Milliseconds left, or UINT64_MAX where there is no limit. */
uint64_t expiry_ttl_left_ms(const struct warden *w);
uint64_t expiry_idle_left_ms(const struct warden *w);
