/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file operation inside a sandbox: a call that reads stdin from a pipe, or writes stdout to a
 * pipe. Several can run at once on the loop of one context.
 */
#pragma once

#include "link/call.h"
#include "ops/cay.h"

struct file_call_spec {
	const char *id; /* of the sandbox */
	enum call_op op;
	const char *path, *user; /* user: NULL: the sandbox's user */
	unsigned mode;		 /* mode of a new file */
	int in_fd;		 /* the call's stdin, read to the end; FD_NONE: empty */
	int out_fd;		 /* the call's stdout; FD_NONE: discarded */
	/*
	 * Called at the end of in_fd: true if the input is complete. False drops the call. May be
	 * NULL.
	 */
	bool (*in_whole)(void *ctx);
	void *in_ctx;
};

struct file_call {
	struct cay *c;
	struct file_call_spec spec; /* its descriptors are borrowed */
	struct link *link;
	struct link_call call;
	struct loop_io in_io, out_io;
	struct buf in_rest, out_rest; /* bytes that the other side has not accepted yet */
	char *chunk;
	bool ended, done; /* ended: the call ended; done: and all its output was passed on */
	bool out_broken;  /* the reader of the output is gone */
	bool failed;	  /* `why` holds the error */
	struct err why;
	/* Valid if the call did not fail. */
	int code;
	struct buf text; /* the beginning of its stderr */
};

/* Makes both descriptors non-blocking. */
int file_call_start(struct file_call *f, struct cay *c, const struct file_call_spec *spec,
		    struct err *e);
/* Waits until the call ends. -1: it never ran, or its outcome is unknown. */
int file_call_wait(struct file_call *f, struct err *e);
/* Ends a running call. Legal on a zeroed struct or before the start. */
void file_call_done(struct file_call *f);
DEFINE_AUTO(struct file_call, file_call_done)
