/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an isolation driver must do. The warden knows only this table; ns/ fills one, vm/ and
 * others may follow. Whatever the mechanism, what comes back is a stream to an init inside
 * that speaks the init protocol (docs/protocol.md).
 *
 * Order: create, kill, destroy. destroy is legal after any failed or finished call, once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"
#include "sys/cgroup_limit.h"
#include "wire/proto.h"

/* 0: no limit. */
struct cell_limits {
	uint64_t memory;    /* bytes, with tmpfs and swap */
	uint64_t pids;	    /* processes and threads */
	uint64_t cpu_milli; /* thousandths of one CPU */
	uint64_t files;	    /* open files of one process */
	uint64_t disk;	    /* bytes written to the sandbox's own layers */
	bool best_effort;   /* go on without what cannot be enforced */
};

/* One that this host cannot enforce. */
struct cell_unenforced {
	const char *limit;
	char why[CGROUP_WHY];
};

/* Sockets in the sandbox's network, for its gateway. A host without IPv6 has no last two. */
enum net_fd { NET_DIAG, NET_TCP4, NET_UDP4, NET_TCP6, NET_UDP6, NET_FDS };

enum { CELL_LOWERS = 4, CELL_MOUNTS = LIMIT_MOUNTS + 16 };

struct cell_mount {
	enum mount_kind kind;
	const char *dest;		/* absolute, inside */
	const char *lower[CELL_LOWERS]; /* absolute, outside; topmost first */
	int nlower;
	bool has_owner;
	uint32_t owner; /* uid outside that is the sandbox's user inside */
};

struct cell_spec {
	const char *id;
	const char *hostname;
	const char *dir;  /* absolute path of the sandbox's directory */
	int dir_fd;	  /* of it */
	const char *init; /* path of the cay-init program */
	bool rootful;
	uint32_t uid_base; /* rootful: first uid and gid of the sandbox's range */
	uint32_t user;	   /* the sandbox's user inside */
	uint64_t files;	   /* open files that a process inside may have (soft limit); 0: as we */
	struct cell_mount mounts[CELL_MOUNTS]; /* the root first */
	int nmounts;
	struct cell_limits limits;
	bool network; /* has a gateway */
};

/* One running isolation. Descriptors are FD_NONE where the driver has no such thing. */
struct cell {
	pid_t pid;
	int pidfd;
	int stream_fd; /* to init; the warden takes it */
	int root_fd;   /* O_PATH of the root inside */
	int devpts_fd; /* where terminals are made */
	struct cgroup cgroup;
	bool has_cgroup;
	uint64_t nproc; /* RLIMIT_NPROC that stands in for the group's limit; 0: none */
	struct cell_unenforced unenforced[4];
	int nunenforced;
	int net_fds[NET_FDS]; /* FD_NONE without a network */
};

struct driver {
	const char *name;
	int (*create)(const struct cell_spec *spec, struct cell *ret, struct err *e);
	/* Ends every process inside. */
	void (*kill)(struct cell *c);
	/* Waits for the last one, and lets go of everything. */
	int (*destroy)(struct cell *c, struct err *e);
};

extern const struct driver ns_driver;
