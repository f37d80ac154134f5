/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a supervisor leaves to the program that replaces it by execve(2): descriptors and children
 * stay, and a memory file tells which is which. Its number is in the environment.
 */
#pragma once

#include <sys/types.h>

#include "api/control.h"
#include "base/err.h"
#include "http/tls.h"
#include "ops/job/queue.h"

enum { HANDOVER_FRONTS = 4, HANDOVER_NAME = 160 };

struct handover_front {
	pid_t pid;
	int fd;			    /* its control socket */
	pid_t workers[JOB_WORKERS]; /* 0: none */
};

struct handover {
	uint64_t generation;
	uint8_t ticket[HTTP_TLS_TICKET];
	struct {
		char name[HANDOVER_NAME]; /* "unix:PATH" or "tcp:ADDR:PORT", as configured */
		int fd;
	} listeners[CONTROL_LISTENERS];
	int nlisteners;
	struct handover_front fronts[HANDOVER_FRONTS];
	int nfronts;
};

/*
 * Read what was left to this process, and forget it in the environment. The descriptors are closed
 * on the next execve(2). 1; 0 if nothing was left; -1 if it is malformed.
 */
int handover_read(struct handover *ret, struct err *e);
/* The listener with this name, which is the caller's from now on; FD_NONE: none. */
int handover_listener(struct handover *h, const char *name);
/* Close the listeners that nobody wanted. */
void handover_close_listeners(struct handover *h);
/* Replace this program. Returns only on failure, with everything as before. */
int handover_exec(const struct handover *h, const char *program, char *const *argv, struct err *e);
