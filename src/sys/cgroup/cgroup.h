/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of one sandbox, below the caller's own group.
 *
 * The v2 hierarchy separates calls and kills them:
 *
 *   cay-ID/            the sandbox, with init in it; frozen and killed as a whole
 *   cay-ID/call-N      all processes of call N
 *   cay-ID/init        init, once a call has its own limit: a group whose children have
 *                      controllers cannot hold processes itself
 *
 * Limits are in v2 too if v2 has the controllers. If a controller has a v1 hierarchy, the first
 * limit makes cay-ID there too, and a limit of one call makes cay-ID/call-N: see cgroup_limit.h.
 *
 * A killed group is never reused: the kernel kills every process that is cloned into it. If groups
 * cannot be made (rootless without delegation), fd stays FD_NONE and all functions here do nothing.
 * All return >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

struct cgroup {
	int fd;	       /* cay-ID, or FD_NONE */
	int parent_fd; /* the caller's own group */
	/* The same groups in the v1 hierarchies. */
	int v1_fd[CGROUP_CONTROLLERS], v1_parent_fd[CGROUP_CONTROLLERS];
	char name[40];
	uid_t owner; /* the sandbox's root, who may put processes into the groups */
	gid_t owner_gid;
	bool chown;
	pid_t init; /* the process in cay-ID itself, which may have to move; 0: none yet */
};

/* No groups yet; a valid argument for cgroup_done() and the others. */
extern const struct cgroup cgroup_none;

/* Prefetch our own group; the next cgroup_new() uses it. */
void cgroup_look_ahead(void);
/* -EACCES, -EROFS, -ENOENT and others if this host does not allow groups. */
int cgroup_new(struct cgroup *g, const char *id);
/* Make and open a group below another. -EEXIST if it exists. */
int cgroup_make_dir(int parent, const char *name);
/* Let this uid (root inside) clone processes into the groups. Rootful only. */
int cgroup_delegate(struct cgroup *g, uid_t uid, gid_t gid);
/* Make a leaf and open it for clone3. */
int cgroup_leaf(struct cgroup *g, const char *leaf);
int cgroup_kill_leaf(struct cgroup *g, const char *leaf);
/* -EBUSY while it holds processes. */
int cgroup_remove_leaf(struct cgroup *g, const char *leaf);
int cgroup_kill(struct cgroup *g);
/*
 * Freeze or thaw all processes; returns when all are frozen. After timeout_ms it thaws them and
 * returns -ETIME.
 */
int cgroup_freeze(struct cgroup *g, bool on, int timeout_ms);
/* Remove all groups. Waits up to timeout_ms for the last process to end. */
int cgroup_remove(struct cgroup *g, int timeout_ms);
void cgroup_done(struct cgroup *g);
