/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call (link/call.h) with our own stdin, stdout, stderr, signals and terminal, until it has
 * ended. Bytes are streamed without a limit and with back-pressure.
 *
 * Our standard descriptors are shared with other processes, so they are never made non-blocking.
 * Pipes and terminals are opened anew instead, sockets are written with MSG_DONTWAIT, and
 * regular files do not block. So a reader that stalls never keeps a signal from its way.
 */
#pragma once

#include "base/buf.h"
#include "link/call.h"

struct call_stdio {
	struct link *link;  /* borrowed; its loop runs */
	int in_fd;	    /* FD_NONE: empty */
	int out_fd, err_fd; /* FD_NONE: dropped */
	bool tty;	    /* in_fd is a terminal that the command takes over */
	bool signals;	    /* pass on what we receive */
	bool leaves;	    /* with tty: ctrl-p ctrl-q leaves the call, which goes on */
	/* The command runs now. True: that is all that we wait for. Or NULL. */
	bool (*started)(void *ctx, const struct call_started *s);
	/* The policy has just refused a target: the fields inside one TAG_DENIED. Not told while
	 * the command has our terminal: a line of ours would spoil a full screen. Or NULL. */
	void (*denied)(void *ctx, struct str fields);
	/* More output came; true: that is enough. Or NULL. */
	bool (*enough)(void *ctx, size_t bytes);
	void *ctx;
};

struct call_outcome {
	bool left;		   /* the call goes on without us: there is no result */
	struct call_result result; /* without its fields */
	struct buf denied;	   /* TAG_DENIED fields: what the policy refused */
	int told;		   /* the last ones of them, printed when they happened */
};

#define CALL_OUTCOME_INIT \
	{ \
		.denied = BUF_INIT(64 * 1024) \
	}
void call_outcome_done(struct call_outcome *o);
DEFINE_AUTO(struct call_outcome, call_outcome_done)

/*
 * -1: it never ran, and e says why (code exec.failed: no such command, or it cannot be executed;
 * sys tells which), or the connection broke.
 */
int call_stdio_run(const struct call_stdio *s, const struct call_spec *spec,
		   struct call_outcome *ret, struct err *e);
/* The same for a detached call that is there. */
int call_stdio_attach(const struct call_stdio *s, const struct call_attach *how,
		      struct call_outcome *ret, struct err *e);

/* On stderr, what READY or STARTED warns of. */
void call_print_warnings(struct str fields);
