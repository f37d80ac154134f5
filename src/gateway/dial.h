/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses may be dialled, and how. Only the dialer dials; the front decides likewise. */
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
/* One that was under way is established: 0, or why it is not as -errno. */
int dial_finish(int fd);
/* Have the kernel notice when the other end is gone without a word. */
void dial_keep(int fd);
