/* SPDX-License-Identifier: Apache-2.0 */
/* What the warden asks init to run: MSG_RUN, taken apart and owned. */
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
	char *user; /* NULL: root, or whoever there is */
	char *path; /* of a file operation */
	mode_t mode;
	int tty;
	enum profile profile;
	bool listen;		    /* a child made ahead: its execs are seen */
	uint64_t files, disk, pids; /* rlimits; 0: as they are */
	int fds[FD_ROLES];	    /* owned; FD_NONE: absent */
};

/* Whom it runs as. */
static inline const char *request_user(const struct request *r)
{
	return r->user ? r->user : "0";
}

/* 0 or -EBADMSG, -E2BIG, -ENOMEM. Takes the fds whatever the result. */
int request_parse(struct request *r, const struct frame *f, int *fds);
void request_done(struct request *r);
