/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of the sandbox and of calls. The warden reads them from requests, records limits that
 * cannot be enforced, and interprets the kernel's counters for a call: `limit.hit`, and the reason
 * "oom" instead of an unexplained signal 9.
 */
#pragma once

#include "warden/call/call.h"

/* Read a field of MSG_C_BUILD. 0: taken; 1: not a limit; -EBADMSG. */
int limits_take(struct warden *w, struct field f);
void limits_trace(const struct warden *w);
/* After the sandbox is built: write limit.unenforced events. */
void limits_trace_unenforced(struct warden *w);
/* "--memory cannot be enforced here: …" for MSG_C_READY. */
const char *limits_warning(const struct cell_unenforced *u, char *out, size_t size);

/* Before the call starts: set its own limit and record the counters. May set c->warning. */
int limits_open_call(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e);
/* After the command has ended: compare the counters. */
void limits_close_call(struct call *c);
/* Init is gone: true if the kernel killed it for lack of memory. Its calls then report that too. */
bool limits_killed_init(struct warden *w);

/* disk.c: measure the uppers periodically, if there is a limit. */
void disk_open(struct warden *w);
void disk_close(struct warden *w);
/* After a command has ended: check whether it reached the quota, if there is one. */
void disk_close_call(struct call *c);
/* A call starts: measure soon. */
void disk_wake(struct warden *w);
