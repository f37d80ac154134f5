/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of the sandbox and of calls, as far as the warden has a part in them: it reads them
 * from requests, writes down what could not be enforced, and tells what the kernel's counters
 * mean for a call: `limit.hit`, and the reason "oom" instead of a mysterious signal 9.
 */
#pragma once

#include "warden/call/call.h"

/* A field of MSG_C_BUILD. 0; 1: it is none of ours; -EBADMSG. */
int limits_take(struct warden *w, struct field f);
void limits_trace(const struct warden *w);
/* The sandbox is built: limit.unenforced events. */
void limits_trace_unenforced(struct warden *w);
/* "--memory cannot be enforced here: …" for MSG_C_READY. */
const char *limits_warning(const struct cell_unenforced *u, char *out, size_t size);

/* Before the call starts: its own limit, and where the counters stand. May set c->warning. */
int limits_open_call(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e);
/* The command has ended: what did the counters do meanwhile? */
void limits_close_call(struct call *c);
/* Init is gone. True where it was killed for lack of memory; then calls say so too. */
bool limits_killed_init(struct warden *w);

/* disk.c: looks at the uppers from time to time, where there is a limit. */
void disk_open(struct warden *w);
void disk_close(struct warden *w);
/* A command has ended: has it met the quota, where there is one? */
void disk_close_call(struct call *c);
/* A call begins: look soon. */
void disk_wake(struct warden *w);
