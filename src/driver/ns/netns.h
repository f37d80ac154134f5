/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network namespace of a sandbox, with its loopback device up. Making it takes the kernel
 * longer than all other namespaces together. So a helper in the caller's own memory makes it, while
 * everything else continues. The caller is the warden; if rootless, it is the child, because only a
 * process in the sandbox's outer user namespace may make it.
 */
#pragma once

#include <sys/types.h>

struct netns {
	pid_t helper;
	int made; /* the helper's result: a descriptor of ours, or -errno */
};

/* 0 or -errno. At most one at a time. */
int netns_begin(struct netns *n);
/* Wait for the helper: the descriptor, or -errno. */
int netns_take(struct netns *n);
