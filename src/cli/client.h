/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to the warden of a sandbox. */
#pragma once

#include <stdint.h>

#include "store/state.h"

struct client_process {
	int pid, ppid;
	uint32_t call;
	char state;
	uint64_t cpu_us, rss_kb;
	const char *user;
	const char *args;
};

struct client_state {
	char state[16];
	int init_pid;
	uint32_t calls_running;
	uint64_t calls_total;
	uint64_t rss_kb;
};

int client_ps(const struct state *s, const char *id,
	      int (*fn)(void *ctx, const struct client_process *p), void *ctx, struct err *e);
int client_info(const struct state *s, const char *id, struct client_state *ret, struct err *e);
/* Ends the warden and waits until it is gone. */
int client_destroy(const struct state *s, const char *id, const char *reason, struct err *e);
