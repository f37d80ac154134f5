/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's version and machine, and what confines the caller. */
#pragma once

#include <stdint.h>

#include "sys/probe/probe.h"

struct probe_kernel {
	char release[66], machine[66];
	int major, minor;
};

/*
 * Things that may prevent us from making namespaces. Numbers are -1 if the host has no such file.
 */
struct probe_guard {
	long max_user_ns;	/* user.max_user_namespaces */
	long userns_clone;	/* kernel.unprivileged_userns_clone, Debian */
	long apparmor_restrict; /* kernel.apparmor_restrict_unprivileged_userns, since Ubuntu 23.10
				 */
	char apparmor[128];	/* our own profile, or empty */
	long seccomp;		/* seccomp mode of the caller: 2 is a filter */
	bool has_sys_admin;
	bool container; /* Docker or Podman marker files exist */
	bool chroot;	/* our root differs from the mount namespace's root */
};

/* "6.1.0-13-amd64" */
bool probe_release_parse(const char *release, int *ret_major, int *ret_minor);
/* Seccomp and CapEff of /proc/self/status. */
void probe_status_parse(struct str text, struct probe_guard *g);

void probe_kernel(struct probe_kernel *ret);
void probe_guard(struct probe_guard *ret);
