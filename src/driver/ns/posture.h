/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify a new sandbox from outside against its spec. Everything is read from /proc/PID; nothing
 * that the child says is trusted. The first difference is an error that names the expected and the
 * found value.
 *
 * A cold start waits for this, so each part runs when there is time:
 * - while the child builds: collect our own facts, and make the kernel create the files of
 *   /proc/PID (posture_open)
 * - while the child executes init: verify what is final once the child has reported
 * - after init's hello: verify init itself
 * - while the first command waits for us: verify the descriptors that init holds, which change
 *   while it starts a command
 */
#pragma once

#include "base/buf.h"
#include "driver/ns/launch.h"

enum { POSTURE_NS = 7 };

/* The parts of verify, each done once. */
enum cell_look {
	LOOK_BUILT, /* mounts, maps and namespaces: final when create returns */
	LOOK_INIT,  /* init itself, after its hello */
	LOOK_OPEN,  /* the descriptors that init holds while it waits */
	LOOKS,
};

struct posture {
	const struct launch *l;
	int proc_fd; /* /proc/PID */
	int root_fd; /* the sandbox's root */
	pid_t pid;
	uint64_t stream;   /* inode of init's end of the stream */
	const char *group; /* cay-ID; NULL: no own group */
	/* Our namespaces; the sandbox's must equal them or must differ. */
	uint64_t namespaces[POSTURE_NS];
	struct buf status;
};

#define POSTURE_INIT \
	{ \
		.proc_fd = FD_NONE, .root_fd = FD_NONE, .status = BUF_INIT(64 * 1024) \
	}

/* Once the child runs. self_fd: /proc/self. */
int posture_open(struct posture *p, int self_fd, struct err *e);
void posture_done(struct posture *p);
DEFINE_AUTO(struct posture, posture_done)

int posture_maps(const struct posture *p, struct err *e);
int posture_mounts(const struct posture *p, struct err *e);
/*
 * Each namespace differs from ours. The user namespaces above init's are ours or U1, and the outer
 * one of these owns everything that root inside must not control.
 */
int posture_namespaces(const struct posture *p, struct err *e);
/* Root inside owns only its copy of the mounts, and so cannot change those above it. */
int posture_owner(int mount_ns, int user_ns, struct err *e);
int posture_status(const struct posture *p, struct err *e);
int posture_rlimits(const struct posture *p, struct err *e);
int posture_group(const struct posture *p, struct err *e);
/* command: has the other end of one of init's pipes as descriptor 3; 0: none. */
int posture_descriptors(const struct posture *p, pid_t command, struct err *e);
int posture_places(const struct posture *p, struct err *e);

/* posture_ns.c's part of posture_open(). */
int posture_namespaces_open(struct posture *p, int self_fd, struct err *e);

int posture_check(const struct posture *p, enum cell_look what, pid_t command, struct err *e);

/* Report a difference. Returns -1. */
int posture_differs(struct err *e, const char *what, const char *want, struct str found);
