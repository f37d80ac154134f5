/* SPDX-License-Identifier: Apache-2.0 */
/* The process that made a request, for the trace. */
#pragma once

#include <stdint.h>

#include "trace/log.h"

struct who {
	int pid; /* 0: none */
	uint32_t uid;
	char program[64]; /* the kernel's name of the process; empty: it is gone */
};

/* Looks up the program's name now. A pid of 0 or less means no process. */
void who_set(struct who *w, int pid, uint32_t uid);
/* Add by, by_pid and by_uid to the event in progress; adds nothing without a process. */
void who_trace(struct trace *t, const struct who *w);
