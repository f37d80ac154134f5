/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call as its client sees it: stdin, stdout and stderr streamed without a limit and with
 * back-pressure, signals and the terminal's size passed on, until the command has ended.
 *
 * Our standard descriptors are shared with others, so they are never made non-blocking.
 * Pipes and terminals are opened anew instead, sockets are written with MSG_DONTWAIT, and
 * regular files do not block. So a reader that stalls never keeps a signal from its way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/frame.h"

/*
 * A switch (MSG_C_SWITCH) before the call, which runs only where that is done. Both are asked for
 * at once: where there is a new layer then, the journal can tell from that how far it came, and the
 * call runs already when `done` is called. Where there is none, as nothing had changed, the call is
 * asked for again after `done`.
 */
struct session_first {
	const struct buf *request;    /* its fields */
	const struct buf *call;	      /* of MSG_C_EXEC, with SWITCHING */
	void (*meanwhile)(void *ctx); /* what can be done before the answer comes */
	/* It is done. Where this fails the call is ended. */
	int (*done)(void *ctx, const struct frame *answer, struct err *e);
	void *ctx;
	bool answered, refused; /* filled in: it was done; the warden would not do it */
};

struct session {
	int warden_fd; /* connected and greeted; borrowed, but non-blocking from now on */
	const struct buf *request;   /* fields of MSG_C_EXEC */
	struct session_first *first; /* or NULL */
	int in_fd;		     /* FD_NONE: empty */
	int out_fd, err_fd;	     /* FD_NONE: dropped */
	struct buf *err_text;	     /* stderr goes here instead, as far as it fits; or NULL */
	bool tty;		     /* in_fd is a terminal that the command takes over */
	bool signals;		     /* pass on what we receive */
	/* The command has been running for later_ms: time for work that need not delay it. */
	void (*later)(void *ctx);
	uint64_t later_ms;
	void *ctx;
};

struct session_result {
	int code;   /* as a shell would see it: exit, 128 + signal, 124 after a timeout */
	int status; /* wait(2) */
	uint32_t call;
	char reason[32];
	bool failed_exec; /* the command does not exist or cannot be executed */
	uint64_t duration_us;
	uint64_t oom_kills; /* processes killed for lack of memory */
	uint64_t memory;    /* the limit that they were killed for */
	const char *limit;  /* its name, as of the option: memory or call-memory */
	struct buf denied; /* TAG_DENIED fields: what the policy refused; the caller's to release */
};

/*
 * -1: it never ran, and e says why (kind NOT_FOUND and sys ENOENT: no such command), or the
 * connection broke.
 */
int session_run(struct session *s, struct session_result *ret, struct err *e);
