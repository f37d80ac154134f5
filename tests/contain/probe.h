/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to get out of a sandbox. One row per attempt: what it tries, what each kind of
 * sandbox must answer, and in which harmless setting outside it must get through. A row whose
 * control is refused as well would prove nothing, so that the suite fails there.
 *
 * Outcomes are names of errors joined by '|'; "ok": it got through; SIGSYS: it was killed.
 */
#pragma once

#include <errno.h>

/* Where the attempt must get through, outside. */
enum setting {
	PLAIN, /* the caller, as it is */
	NS,    /* root of new namespaces of all kinds, a user namespace among them */
	ROOT,  /* the machine's root in new namespaces, but not of users: only where we are root */
};

struct check {
	const char *name;
	const char *tries;
	int (*run)(const struct check *c); /* 0 or -errno; in a process of its own */
	enum setting control;
	const char *allowed; /* how the control shows that it got through; NULL: "ok" */
	const char *lacks;   /* outcomes of the control where this host has no such thing */
	/* What is right inside; NULL: root and locked as dev, dev EPERM. "ok": nothing to refuse.
	 */
	const char *dev, *root, *locked;
	/* With all capabilities in the inner user namespace, without filter and Landlock: what the
	   order of namespaces alone must refuse. NULL: not tried there. */
	const char *bare;
	long nr, a[6];
	const char *path;
};

struct topic {
	const char *name;
	const struct check *checks;
	int n;
};

/* Refused by rights, or not there. */
#define CLOSED "EPERM|EACCES|EROFS|ENOENT"
/* The kernel was built without it. */
#define NOT_BUILT "ENOSYS|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT|ENOPROTOOPT|EOPNOTSUPP"

enum { UNSET = 250 }; /* an argument that the check needs was not given */

extern const struct topic calls_topic, mounts_topic, spaces_topic, sockets_topic, net_topic,
	proc_topic, sys_topic, devices_topic, processes_topic, reach_topic, leak_topic, self_topic;

/* KEY=VALUE of the command line; ends the check where it was not given. */
const char *param(const char *key);
long param_number(const char *key);

/* The system call of the row with the row's arguments. */
int run_call(const struct check *c);
/* Opens the row's path: reads of it, or not, or opens it for writing. ENODATA: it is empty. */
int run_read(const struct check *c);
int run_write_open(const struct check *c);
int run_open(const struct check *c);
int result(long r); /* 0, or -errno where r < 0 */

/* Mounts of our own, where that is allowed: whatever follows leaves nothing behind. */
void own_mounts(void);
/* The same with an empty tmpfs at /tmp, where that is allowed; "/tmp" is the working directory. */
void own_tmp(void);
