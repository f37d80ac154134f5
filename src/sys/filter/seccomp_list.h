/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls allowed inside, as data. Init installs the list, and every command inherits it
 * and loses some more (seccomp_command.h). The list consists of questions: the first is about the
 * system call's number, the others about one of its arguments. An answer is a verdict or the next
 * question. seccomp_filter.h turns it into a program.
 *
 * For most arguments only the low half is compared, because the kernel ignores the rest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum seccomp_answer {
	SECCOMP_ABSENT, /* ENOSYS, as on an older kernel: libraries then fall back */
	SECCOMP_ALLOW,
	SECCOMP_REFUSE,	     /* EPERM */
	SECCOMP_DEV,	     /* allowed in the profile dev, EPERM in locked */
	SECCOMP_INIT,	     /* allowed for init only: EPERM for commands */
	SECCOMP_INIT_ABSENT, /* allowed for init only: ENOSYS for commands */
	SECCOMP_UNKNOWN,     /* EINVAL, as for a value unknown to the kernel */
	SECCOMP_NO_PROTOCOL, /* EPROTONOSUPPORT, as from a kernel built without it */
	SECCOMP_PRETEND,     /* do nothing and report success */
	/* questions; each leads only to later ones */
	SECCOMP_ASK_CLONE,
	SECCOMP_ASK_UNSHARE,
	SECCOMP_ASK_IOCTL,
	SECCOMP_ASK_PRCTL,
	SECCOMP_ASK_PERSONALITY,
	SECCOMP_ASK_SETRLIMIT,
	SECCOMP_ASK_PRLIMIT_PID, /* which process; then the next questions */
	SECCOMP_ASK_PRLIMIT,	 /* which limit; then both halves of the new limit's address */
	SECCOMP_ASK_PRLIMIT_LOW,
	SECCOMP_ASK_PRLIMIT_HIGH,
	SECCOMP_ASK_SOCKETPAIR,
	SECCOMP_ASK_SOCKET, /* family */
	SECCOMP_ASK_INET_TYPE,
	SECCOMP_ASK_INET_PROTOCOL,
	SECCOMP_ASK_NETLINK_PROTOCOL,
	SECCOMP_ANSWERS,
	SECCOMP_ASK_FIRST = SECCOMP_ASK_CLONE,
};

struct seccomp_call {
	uint16_t nr;
	uint8_t answer;
};

/* Values first to last have this answer. */
struct seccomp_span {
	uint32_t first, last;
	uint8_t answer;
};

struct seccomp_question {
	const struct seccomp_span *spans; /* in order, not overlapping */
	uint32_t mask;			  /* the bits to compare */
	uint8_t n, arg;
	bool high;     /* the upper half of the argument */
	uint8_t other; /* the answer for every other value */
};

/* Grouped by purpose, each number once; unlisted numbers are SECCOMP_ABSENT. */
extern const struct seccomp_call seccomp_calls[];
extern const int seccomp_ncalls;
/*
 * The answer for this call. nested: in a sandbox with --nested, where commands may make their own
 * namespaces and mounts, and where keyrings are missing instead of refused.
 */
uint8_t seccomp_answer_of(const struct seccomp_call *c, bool nested);
/* Indexed by answer - SECCOMP_ASK_FIRST. */
extern const struct seccomp_question seccomp_questions[SECCOMP_ANSWERS - SECCOMP_ASK_FIRST];
