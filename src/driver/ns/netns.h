/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network namespace of a sandbox, with its loopback device up. To make one takes the kernel
 * longer than all others together; root has it made aside, by a helper in the warden's own
 * memory, while everything else goes on. Without root only the child itself may make it.
 */
#pragma once

#include <sys/types.h>

struct netns {
	pid_t helper;
	int made; /* what the helper came to: a descriptor of ours, or -errno */
};

/* 0 or -errno. At most one at a time. */
int netns_begin(struct netns *n);
/* Waits for it: the descriptor, or -errno. */
int netns_take(struct netns *n);
/* Bring up the loopback device of the network namespace that we are in. 0 or -errno. */
int netns_lo_up(void);
