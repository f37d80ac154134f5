/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of one sandbox, below the caller's own group.
 *
 * In the v2 hierarchy, which tells calls apart and kills them:
 *
 *   cay-ID/            the sandbox, with init in it; frozen and killed as a whole
 *   cay-ID/call-N      all processes of call N
 *   cay-ID/init        init, once a call has a limit of its own: a group whose children have
 *                      controllers holds no processes itself
 *
 * Limits are written there too where the v2 hierarchy has the controllers. Where a controller
 * has a v1 hierarchy, cay-ID (and for a limit of a call's own cay-ID/call-N) is made there as
 * well, once a limit asks for it: cgroup_limit.h.
 *
 * A group that was killed is never used again: the kernel kills whoever is cloned into it.
 * Where groups cannot be made (rootless without delegation), fd stays FD_NONE and everything
 * here is a no-op. All return >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

struct cgroup {
	int fd;	       /* cay-ID, or FD_NONE */
	int parent_fd; /* the caller's own group */
	/* The same in the v1 hierarchies. */
	int v1_fd[CGROUP_CONTROLLERS], v1_parent_fd[CGROUP_CONTROLLERS];
	char name[40];
	uid_t owner; /* who inside may put processes into the groups: root of the sandbox */
	gid_t owner_gid;
	bool chown;
	pid_t init; /* who is in cay-ID itself, and may have to make room; 0: nobody yet */
};

/* No groups yet: what cgroup_done() and the rest take. */
extern const struct cgroup cgroup_none;

/* Find our own group already; the next cgroup_new() goes on from there. */
void cgroup_look_ahead(void);
/* -EACCES, -EROFS, -ENOENT and the like where this host does not let us. */
int cgroup_new(struct cgroup *g, const char *id);
/* A new group below another, opened. -EEXIST where there is one already. */
int cgroup_make_dir(int parent, const char *name);
/* Let processes of this uid (root inside) clone into the groups. Rootful only. */
int cgroup_delegate(struct cgroup *g, uid_t uid, gid_t gid);
/* Make a leaf and open it for clone3. */
int cgroup_leaf(struct cgroup *g, const char *leaf);
int cgroup_kill_leaf(struct cgroup *g, const char *leaf);
/* -EBUSY while processes are in it. */
int cgroup_remove_leaf(struct cgroup *g, const char *leaf);
int cgroup_kill(struct cgroup *g);
/* Every process stands still when this returns, or goes on. -ETIME after timeout_ms, thawed. */
int cgroup_freeze(struct cgroup *g, bool on, int timeout_ms);
/* Remove all of it, waiting up to timeout_ms for the last process to be gone. */
int cgroup_remove(struct cgroup *g, int timeout_ms);
void cgroup_done(struct cgroup *g);
