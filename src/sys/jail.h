/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jail for a program of ours that reads hostile bytes: user, mount, pid, ipc, uts and cgroup
 * namespaces of its own, an empty read-only root, one uid that nobody else has, no capabilities,
 * NO_NEW_PRIVS. It keeps the network namespace that we are in.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { JAIL_STREAM = 3, JAIL_UID = 65534 };

struct jail {
	const char *program; /* path outside; static */
	const char *name;    /* argv[0] */
	int stream_fd;	     /* becomes descriptor 3; borrowed */
	uid_t uid;	     /* outside; without root our own */
	gid_t gid;
};

/* 0 with the pid and a pidfd, or -errno. The program runs, or ends with 125. */
int jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd);
