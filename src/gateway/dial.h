/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the gateway may dial. Every address goes through dial_allowed(), however it was found, but
 * that of the host's own proxy (via.h).
 */
#pragma once

#include "gateway/gateway.h"

/*
 * The verdict of the policy for this address, and beyond it: never an address of this host's own
 * unless a rule names exactly that one, and its loopback never.
 */
void dial_allowed(struct gateway *g, const struct policy_query *q, struct policy_verdict *ret);

/* A non-blocking connection that is under way, or there (*ret_open); fd or -errno. */
int dial_start(const struct ip *ip, uint16_t port, bool *ret_open);

/* It is open, and to be noticed when the other end is gone without a word. */
void dial_keep(int fd);
