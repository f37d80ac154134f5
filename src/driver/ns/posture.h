/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks from outside at a new sandbox: is it what was asked for? Everything is read from /proc/PID,
 * nothing is believed that the child has said. The first difference is an error that names what
 * was expected and what was found.
 *
 * A cold start waits for it, so that its parts are done when there is time: what is ours is looked
 * up, and the files of /proc/PID are made to exist in memory, while the child builds
 * (posture_open); what is final once the child has reported while it executes init; what init has
 * become when it has said hello; and what it holds, which changes while it starts a command, when
 * that command waits for us.
 */
#pragma once

#include "base/buf.h"
#include "driver/ns/launch.h"

enum { POSTURE_NS = 7 };

struct posture {
	const struct launch *l;
	int proc_fd; /* /proc/PID */
	int root_fd; /* the sandbox's root */
	pid_t pid;
	uint64_t stream;   /* inode of init's end of the stream */
	const char *group; /* cay-ID; NULL: no group of its own */
	/* Ours, which theirs must equal or must not. */
	uint64_t namespaces[POSTURE_NS];
	struct buf status;
};

#define POSTURE_INIT \
	{ \
		.proc_fd = FD_NONE, .root_fd = FD_NONE, .status = BUF_INIT(64 * 1024) \
	}

/* Once the child lives. self_fd: /proc/self. */
int posture_open(struct posture *p, int self_fd, struct err *e);
void posture_done(struct posture *p);
DEFINE_AUTO(struct posture, posture_done)

int posture_maps(const struct posture *p, struct err *e);
int posture_mounts(const struct posture *p, struct err *e);
/* Each differs from ours, the user namespaces above init's are ours or U1, and the outer one of
 * these owns what root inside must have no power over. */
int posture_namespaces(const struct posture *p, struct err *e);
/* Root inside owns its copy of the mounts, and so has no power over those above it. */
int posture_owner(int mount_ns, int user_ns, struct err *e);
int posture_status(const struct posture *p, struct err *e);
int posture_rlimits(const struct posture *p, struct err *e);
int posture_group(const struct posture *p, struct err *e);
/* command: has the other end of a pipe of init's on its descriptor 3; 0: none. */
int posture_descriptors(const struct posture *p, pid_t command, struct err *e);
int posture_places(const struct posture *p, struct err *e);

/* posture_ns.c's part of posture_open(). */
int posture_namespaces_open(struct posture *p, int self_fd, struct err *e);

int posture_check(const struct posture *p, enum cell_look what, pid_t command, struct err *e);

/* What every difference is reported as. Returns -1. */
int posture_differs(struct err *e, const char *what, const char *want, struct str found);
