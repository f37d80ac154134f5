/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls may be made inside, as data. Init takes the list upon itself, and every
 * command inherits it and loses some more (seccomp_command.h). The list is one of questions: the
 * first is about the call's number, the others about one of its arguments. An answer is a verdict
 * or the next question. seccomp_filter.h makes a program of it.
 *
 * Of most arguments only the low half is looked at: the kernel takes no more of these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum seccomp_answer {
	SECCOMP_ABSENT, /* ENOSYS, as on a kernel that is too old for it: libraries fall back */
	SECCOMP_ALLOW,
	SECCOMP_REFUSE,	     /* EPERM */
	SECCOMP_DEV,	     /* allowed in the profile dev, EPERM in locked */
	SECCOMP_INIT,	     /* init's alone: EPERM for commands */
	SECCOMP_INIT_ABSENT, /* likewise, ENOSYS */
	SECCOMP_UNKNOWN,     /* EINVAL, as for a value that the kernel does not know */
	SECCOMP_NO_PROTOCOL, /* EPROTONOSUPPORT, as of a kernel built without */
	SECCOMP_PRETEND,     /* nothing is done, and success is said */
	/* questions; one leads only to those below it */
	SECCOMP_ASK_CLONE,
	SECCOMP_ASK_UNSHARE,
	SECCOMP_ASK_IOCTL,
	SECCOMP_ASK_PRCTL,
	SECCOMP_ASK_PERSONALITY,
	SECCOMP_ASK_SETRLIMIT,
	SECCOMP_ASK_PRLIMIT, /* which; then the address of the new one, both halves of it */
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
	uint32_t mask;			  /* of the bits that count */
	uint8_t n, arg;
	bool high;     /* the upper half of the argument */
	uint8_t other; /* the answer for every other value */
};

/* By purpose, each number once; what is not listed is ABSENT. */
extern const struct seccomp_call seccomp_calls[];
extern const int seccomp_ncalls;
/* By answer, less SECCOMP_ASK_FIRST. */
extern const struct seccomp_question seccomp_questions[SECCOMP_ANSWERS - SECCOMP_ASK_FIRST];
