/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of system calls for a jailed program of ours: all others fail. */
#pragma once

#include <stdint.h>

struct seccomp_few {
	const uint16_t *allow;
	int nallow;
	const uint16_t *absent; /* these fail with ENOENT: there are no files */
	int nabsent;
};

/*
 * Others are ENOSYS, socket(2) makes only TCP and UDP sockets, another ABI kills. Sets
 * NO_NEW_PRIVS. 0 or -errno.
 */
int seccomp_few_install(const struct seccomp_few *f);
