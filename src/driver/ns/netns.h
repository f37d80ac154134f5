/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network namespace of a sandbox, with its loopback device up. To make one takes the kernel
 * longer than all others together: it is made aside, by a helper in the caller's own memory,
 * while everything else goes on. The caller is the warden, or without root, where only somebody
 * in the sandbox's outer user namespace may make it, the child.
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
