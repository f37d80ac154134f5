/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a warden about its network. */
#pragma once

#include "cli/client.h"

struct client_flow {
	char name[256], address[64];
	uint16_t port;
	uint32_t call;
	uint64_t up, down, duration_us;
};

/* A new policy; *ret_cut: connections that it ended. */
int client_set_policy(const struct state *s, const char *id, struct str compiled, uint64_t *ret_cut,
		      struct err *e);
int client_flows(const struct state *s, const char *id,
		 int (*fn)(void *ctx, const struct client_flow *f), void *ctx, struct err *e);
