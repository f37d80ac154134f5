/* SPDX-License-Identifier: Apache-2.0 */
/* Decide which addresses may be dialled, and dial them. Only the dialer dials; the front decides
 * with the same code. */
#pragma once

#include "policy/policy.h"

/*
 * The verdict of the policy for this address, and beyond it: never an address of this host's own
 * (local) unless a rule names exactly that one, and its loopback never.
 */
void dial_verdict(const struct policy *p, const struct policy_query *q, bool local,
		  struct policy_verdict *ret);

/* A non-blocking connection that is under way, or established (*ret_open); fd or -errno. */
int dial_start(const struct ip *ip, uint16_t port, bool *ret_open);
/* A pending connection became writable: 0 if it is established, else -errno. */
int dial_finish(int fd);
/* Enable keepalive, so that the kernel notices a peer that vanished. */
void dial_keep(int fd);
