/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of system calls as a classic BPF program. Numbers and values become sorted ranges with a
 * binary search, so a system call costs about eight comparisons. Since Linux 5.11 the kernel caches
 * which numbers are allowed for all arguments, and skips the program for them.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

enum { SECCOMP_PROGRAM_MOST = 1024 };

struct seccomp_program {
	struct sock_filter code[SECCOMP_PROGRAM_MOST];
	int n;
};

/* nested: see seccomp_list.h. -E2BIG if the list does not fit into one program. */
int seccomp_program_build(struct seccomp_program *p, bool nested);
/*
 * For the calling thread and all that it starts; this cannot be undone. The caller needs
 * CAP_SYS_ADMIN in its user namespace, or NO_NEW_PRIVS. 0 or -errno.
 */
int seccomp_program_install(struct seccomp_program *p);
