/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network use of a sandbox by host: past connections from the trace, current ones from the gateway.
 */
#pragma once

#include "ops/cay.h"

struct net_row {
	char host[256];
	uint32_t port;
	uint32_t call;
	uint64_t connections, open, denied, up, down;
};

struct net_result {
	struct net_row *rows;
	int n, lost; /* lost: number of hosts that did not fit */
	bool by_call;
};

/* by_call: one row per call and host. Most bytes first. */
int op_net(struct cay *c, const char *ref, bool by_call, struct net_result *ret, struct err *e);
void net_result_done(struct net_result *r);
DEFINE_AUTO(struct net_result, net_result_done)
