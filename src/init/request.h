/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the warden to run something: a parsed MSG_RUN, which owns its parts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/frame.h"
#include "wire/proto.h"

struct request {
	enum call_op op;
	char **argv; /* NULL-terminated; empty: the user's login shell */
	int argc;
	char **envp; /* NULL-terminated */
	int envc;
	char *cwd;  /* NULL: the user's home */
	char *user; /* NULL: root, or the only user */
	char *path; /* for a file operation */
	mode_t mode;
	uint64_t offset, length; /* for a file to read; length UINT64_MAX: all */
	int tty;
	enum profile profile;
	enum trace_level trace;	    /* whether the warden's listener sees execs */
	uint64_t files, disk, pids; /* rlimits; 0: unchanged */
	uint64_t memory;	    /* the sandbox's limit, to inform runtimes; 0: none */
	int fds[FD_ROLES];	    /* owned; FD_NONE: absent */
};

/* The user it runs as. */
static inline const char *request_user(const struct request *r)
{
	return r->user ? r->user : "0";
}

/*
 * stream: no descriptors pass, and init makes the stdio descriptors itself. 0 or -EBADMSG, -E2BIG,
 * -ENOMEM. Takes the fds, also on failure.
 */
int request_parse(struct request *r, const struct frame *f, int *fds, bool stream);
void request_done(struct request *r);
