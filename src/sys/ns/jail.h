/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jail for our own programs that read hostile bytes: own user, mount, pid, ipc, uts and cgroup
 * namespaces, an empty read-only root, a uid of its own, no capabilities, NO_NEW_PRIVS. The jail
 * keeps our network namespace or gets an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { JAIL_STREAM = 3, JAIL_PEER = 4, JAIL_UID = 65534 };

struct jail {
	const char *program; /* path outside; must be statically linked */
	const char *name;    /* argv[0] */
	const char *role;    /* argv[1] */
	int stream_fd;	     /* becomes descriptor 3; borrowed */
	int peer_fd;	     /* becomes descriptor 4; borrowed */
	bool no_network;     /* an empty network namespace, without even a loopback device */
	uid_t uid;	     /* outside; without root our own uid */
	gid_t gid;
};

/* 0 with the pid and a pidfd, or -errno. If the program cannot start, it exits with 125. */
int jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd);
