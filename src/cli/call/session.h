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

struct session {
	int warden_fd; /* connected and greeted; borrowed, but non-blocking from now on */
	const struct buf *request; /* fields of MSG_C_EXEC */
	int in_fd;		   /* FD_NONE: empty */
	/* At the end of in_fd: whether that is really its end. Else the call is killed; or NULL. */
	bool (*in_whole)(void *ctx);
	void *in_ctx;
	int out_fd, err_fd;	    /* FD_NONE: dropped */
	struct buf *err_text;	    /* stderr goes here instead, as far as it fits; or NULL */
	bool tty;		    /* in_fd is a terminal that the command takes over */
	bool signals;		    /* pass on what we receive */
	void (*started)(void *ctx); /* the command runs now; or NULL */
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
