/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp, Landlock and process descriptors. */
#pragma once

#include "sys/probe/probe.h"

struct probe_filter {
	int notify;	/* a system call that waits for the listener's holder */
	bool killable;	/* signals do not interrupt that wait: Linux 5.19 */
	int landlock;	/* ABI, or -errno */
	int pidfd;	/* opening one */
	int pidfd_exit; /* the exit status of a reaped process: Linux 6.15 */
};

void probe_filter(struct probe_filter *ret);
