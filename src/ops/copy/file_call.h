/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file operation inside a sandbox: a call whose stdin comes from a pipe, or whose stdout goes
 * to one. Several can be under way at once, on the loop of one context.
 */
#pragma once

#include "link/call.h"
#include "ops/cay.h"

struct file_call_spec {
	const char *id; /* of the sandbox */
	enum call_op op;
	const char *path, *user; /* user: NULL: the sandbox's */
	unsigned mode;		 /* of a new file */
	int in_fd;		 /* the call's stdin, until its end; FD_NONE: empty */
	int out_fd;		 /* the call's stdout; FD_NONE: dropped */
	/* At the end of in_fd: whether that is really its end. Else the call is dropped; or NULL.
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
	struct buf in_rest, out_rest; /* what the other side has not taken yet */
	char *chunk;
	bool ended, done; /* the call has; and all of its output was passed on */
	bool out_broken;  /* nobody takes its output any more */
	bool failed;	  /* why says it */
	struct err why;
	/* Of one that did not fail. */
	int code;
	struct buf text; /* its stderr, the beginning */
};

/* Makes both descriptors non-blocking. */
int file_call_start(struct file_call *f, struct cay *c, const struct file_call_spec *spec,
		    struct err *e);
/* Until it has ended. -1: it was never run, or it is not known how it ended. */
int file_call_wait(struct file_call *f, struct err *e);
/* Ends it where it runs. Legal on one that is zero, or was not started. */
void file_call_done(struct file_call *f);
DEFINE_AUTO(struct file_call, file_call_done)
