/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of system calls as a classic BPF program. Numbers and values become sorted ranges
 * and a binary search over them, so that a call costs about eight comparisons; and the
 * kernel remembers (from 5.11 on) which numbers are allowed whatever their arguments are, and
 * does not run the program for these at all.
 */
#pragma once

#include <linux/filter.h>
enum { SECCOMP_PROGRAM_MOST = 1024 };

struct seccomp_program {
	struct sock_filter code[SECCOMP_PROGRAM_MOST];
	int n;
};

/* -E2BIG where the list has outgrown what one program can hold. */
int seccomp_program_build(struct seccomp_program *p);
/*
 * For the calling thread and all that it starts; there is no way back. The caller has
 * CAP_SYS_ADMIN in its user namespace or NO_NEW_PRIVS. 0 or -errno.
 */
int seccomp_program_install(struct seccomp_program *p);
