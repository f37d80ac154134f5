/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing a sandbox, and the times after which it ends or pauses by itself.
 *
 * While paused, no process inside runs, not even init: the whole control group is frozen. Without a
 * group (rootless without delegation), every process but init is stopped by a signal, which
 * processes inside may notice and undo. All clocks stop: time limits of calls, the time to live and
 * the idle time. A request for a call resumes the sandbox.
 *
 * The time to live counts from the creation, from cay extend, or from a resume after it had
 * expired. The idle time counts while no call runs; processes left behind do not count as activity.
 */
#pragma once

#include "warden/warden.h"

/* Legal in either state; 0 if already in that state. reason: for the trace. */
int pause_enter(struct warden *w, const char *reason, struct err *e);
int pause_leave(struct warden *w, const char *reason, struct err *e);

/* Read a field of MSG_C_BUILD: 0: taken, 1: not ours, -EBADMSG. */
int expiry_take(struct warden *w, struct field f);
/* The sandbox is ready: start the clocks. */
void expiry_open(struct warden *w);
void expiry_close(struct warden *w);
/* The number of running calls has changed. */
void expiry_activity(struct warden *w);
/* Set a new time to live, counted from now; 0: none. */
void expiry_extend(struct warden *w, uint64_t ttl_ms);
/* The same, until a time of the real clock; 0: none. Returns the resulting time to live. */
uint64_t expiry_until(struct warden *w, uint64_t at_ms);
/* The time-to-live timer was set or stopped: record when it expires. */
void expiry_note(struct warden *w);
/* Milliseconds left; UINT64_MAX: no limit. */
uint64_t expiry_ttl_left_ms(const struct warden *w);
uint64_t expiry_idle_left_ms(const struct warden *w);
