/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp, Landlock and process descriptors. */
#pragma once

#include "sys/probe.h"

struct probe_filter {
	int notify;	/* a call that waits for the holder of a listener */
	bool killable;	/* ...and that a signal does not break: Linux 5.19 */
	int landlock;	/* ABI, or -errno */
	int pidfd;	/* opening one */
	int pidfd_exit; /* the exit status of a process that is reaped already: Linux 6.15 */
};

void probe_filter(struct probe_filter *ret);
