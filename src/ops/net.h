/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox talks to, by host: the trace tells what was, the gateway what is. */
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
	int n, lost; /* lost: so many more did not fit */
	bool by_call;
};

/* by_call: a row for each call that used a host. The most bytes first. */
int op_net(struct cay *c, const char *ref, bool by_call, struct net_result *ret, struct err *e);
void net_result_done(struct net_result *r);
DEFINE_AUTO(struct net_result, net_result_done)
