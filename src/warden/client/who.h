/* SPDX-License-Identifier: Apache-2.0 */
/* Which process asked for something, for the trace. */
#pragma once

#include <stdint.h>

#include "trace/log.h"

struct who {
	int pid; /* 0: nobody asked */
	uint32_t uid;
	char program[64]; /* its name as the kernel has it; empty: it is gone */
};

/* Looks up the program's name now. A pid of 0 or less is nobody. */
void who_set(struct who *w, int pid, uint32_t uid);
/* Add by, by_pid and by_uid to the event that is being built; nothing for nobody. */
void who_trace(struct trace *t, const struct who *w);
