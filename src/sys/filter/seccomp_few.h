/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of system calls for one of our jailed programs; all others fail. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seccomp_few {
	const uint16_t *allow;
	int nallow;
	const uint16_t *absent; /* these fail with ENOENT: there are no files */
	int nabsent;
	bool dials; /* socket(2) makes TCP and UDP sockets, connect(2) connects them */
};

/*
 * System calls not listed fail with ENOSYS; another ABI kills. Without `dials`, socket, connect,
 * bind, listen and sendmmsg fail with EPERM. sendto and sendmsg are always allowed, except with
 * MSG_FASTOPEN (EPERM), because that flag connects. Sets NO_NEW_PRIVS. 0 or -errno.
 */
int seccomp_few_install(const struct seccomp_few *f);
