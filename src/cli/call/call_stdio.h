/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one call (link/call.h) with our own stdin, stdout, stderr, signals and terminal, until it
 * has ended. Bytes are streamed without a limit and with back-pressure.
 *
 * Our standard descriptors are shared with other processes, so they are never made non-blocking.
 * Instead, pipes and terminals are opened again, sockets are written with MSG_DONTWAIT, and regular
 * files do not block. So a stalled reader never delays a signal.
 */
#pragma once

#include "base/buf.h"
#include "link/call.h"

struct call_stdio {
	struct link *link;  /* borrowed; its loop runs */
	int in_fd;	    /* FD_NONE: empty */
	int out_fd, err_fd; /* FD_NONE: discarded */
	bool tty;	    /* in_fd is a terminal that the command takes over */
	bool signals;	    /* forward the signals that we receive */
	bool leaves;	    /* with tty: ctrl-p ctrl-q leaves the call, which keeps running */
	/* Called when the command runs; true: stop waiting. Or NULL. */
	bool (*started)(void *ctx, const struct call_started *s);
	/* Called for more output; true: stop waiting. Or NULL. */
	bool (*enough)(void *ctx, size_t bytes);
	void *ctx;
};

struct call_outcome {
	bool left;		   /* the call keeps running without us: there is no result */
	struct call_result result; /* without its fields */
	struct buf denied;	   /* TAG_DENIED fields: connections that the policy denied */
};

#define CALL_OUTCOME_INIT \
	{ \
		.denied = BUF_INIT(64 * 1024) \
	}
void call_outcome_done(struct call_outcome *o);
DEFINE_AUTO(struct call_outcome, call_outcome_done)

/*
 * -1: it never ran, and e says why (code exec.failed: no such command, or not executable; sys tells
 * which), or the connection broke.
 */
int call_stdio_run(const struct call_stdio *s, const struct call_spec *spec,
		   struct call_outcome *ret, struct err *e);
/* The same for an existing detached call. */
int call_stdio_attach(const struct call_stdio *s, const struct call_attach *how,
		      struct call_outcome *ret, struct err *e);

/* Print the warnings of READY or STARTED on stderr. */
void call_print_warnings(struct str fields);
