/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a launch: from clone3 to the exec of init.
 *
 * The child begins as root over fresh namespaces but in the outer user namespace (U1; the
 * host's own when rootful), builds the tree, pivots into it, and only then enters the user
 * namespace of the workload (U2) with a mount namespace below it. All mounts are inherited
 * from a more privileged namespace at that moment and therefore locked: root inside can
 * neither undo a mask nor remount anything.
 */
#pragma once

#include "driver/driver.h"

struct launch {
	const struct cell_spec *spec;
	int setup_fd;			 /* socket to the warden */
	int stream_fd;			 /* init's end of its stream */
	int ours[2];			 /* the warden's ends of both */
	int init_fd;			 /* memfd with init */
	int net_fd;			 /* where the gateway's sockets go; FD_NONE: no network */
	int userns_fd;			 /* U2; FD_NONE when rootless */
	int entries[CGROUP_CONTROLLERS]; /* cgroup.procs of groups to enter first; FD_NONE */
	int owner_ns[CELL_MOUNTS]; /* id map of a mount with an owner of its own; FD_NONE: U2's */
};

/* What the child says about itself: one message on setup_fd, fds only when ok. */
struct launch_report {
	int sys; /* 0 ok, else the errno of what failed */
	char what[248];
};

enum { LAUNCH_FD_ROOT, LAUNCH_FD_DEVPTS, LAUNCH_FDS };

/* Never returns. */
void launch_child(const struct launch *l) __attribute__((noreturn));

/* The steps, each in its own file. 0, or -errno with *what naming the thing. */
struct tree {
	const struct launch *l;
	int stage_fd; /* where mounts are put together */
	int root_fd;  /* the merged root */
	int proc_fd, dev_fd, sys_fd;
	char what[248];
};

/* First what needs nothing of the sandbox's own, while the warden still makes the uppers. */
int tree_stage(struct tree *t);
int tree_proc(struct tree *t);
int tree_dev(struct tree *t);
/* Then its root and the other mounts, and the parts from the stage into it. */
int tree_mounts(struct tree *t);
int tree_place(struct tree *t);

/* Attach a new mount on the stage, under a name of its own. */
int tree_put(struct tree *t, int mount_fd, const char *name);
