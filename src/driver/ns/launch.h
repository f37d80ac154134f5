/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a launch: from clone3 to the exec of init.
 *
 * The child begins as root over fresh namespaces but in the outer user namespace (U1; the
 * host's own when rootful), builds the tree, pivots, and only then enters the user namespace of
 * the workload (U2) with a mount namespace below it. All mounts are inherited from a more
 * privileged namespace at that moment and therefore locked: root inside can neither undo a mask
 * nor remount anything.
 *
 * What it pivots to is the *keel*: an empty, read-only tmpfs with two mount points. The root
 * that the sandbox sees is mounted on one of them, and the child changes its root to that. The
 * first mount namespace (M1) stays, in the warden's hands: in a copy of it the next generation is
 * mounted on the other one (renew.c). The keel is also what Landlock's rule is about: it lies above
 * every generation, while the root of each is another directory. Whoever breaks out of the change
 * of root finds a directory that is empty, read-only and closed to all users inside.
 */
#pragma once

#include "driver/driver.h"
#include "driver/ns/netns.h"
#include "sys/layer.h"
#include "sys/userns.h"

enum {
	/*
	 * RLIMIT_CORE. Not 0: where core_pattern is a pipe, 0 still starts the host's helper, and 1
	 * is what the kernel takes as "none at all" (fs/coredump.c). No file is that small either.
	 * Who may not have even that stays with 0.
	 */
	LAUNCH_CORE = 1,
	LAUNCH_MAPS = 4,
};

struct launch {
	const struct cell_spec *spec;
	int setup_fd;			 /* socket to the warden */
	int stream_fd;			 /* init's end of its stream */
	int ours[2];			 /* the warden's ends of both */
	int net_fd;			 /* where the gateway's sockets go; FD_NONE: no network */
	int entries[CGROUP_CONTROLLERS]; /* cgroup.procs of groups to enter first; FD_NONE */
	/* Made while the child is at work already, and sent to it: launch_send_parts. */
	int init_fd;   /* memfd with init */
	int userns_fd; /* U2; FD_NONE when rootless */
	int netns_fd;  /* its network namespace; FD_NONE when rootless: the child makes it */
	struct netns net;
	/* U2's maps as seen from here, and who init is out here. */
	struct idmap uids[LAUNCH_MAPS], gids[LAUNCH_MAPS];
	int nuids, ngids;
	uint32_t init_uid, init_gid; /* when rootless the warden's own as well */
	uint64_t core;		     /* RLIMIT_CORE inside */
};

/* What it was doing when a network namespace could not be had. */
#define LAUNCH_NETWORK "make the network namespace"
/* And when a user could not be mapped. */
#define LAUNCH_USER "map the user into the namespace"

/* What the child says about itself: one message on setup_fd, fds only when ok. */
struct launch_report {
	int sys; /* 0 ok, else the errno of what failed */
	char what[248];
};

/* Then come the mounts of the spec, and when rootless U2. */
enum { LAUNCH_FD_ROOT, LAUNCH_FD_DEVPTS, LAUNCH_FD_M1, LAUNCH_FD_M2, LAUNCH_FDS };

/* Whether mount i has an owner whose ids are swapped with the user's: it has a map of its own. */
bool launch_has_map(const struct cell_spec *s, int i);
/* Tell the child that the uppers are there, with init, U2, its network and the maps of mounts. 0 or
 * -errno. */
int launch_send_parts(const struct launch *l, int sock, const int owner_ns[CELL_MOUNTS]);

/* Never returns. */
void launch_child(const struct launch *l) __attribute__((noreturn));

/* The steps, each in its own file. 0, or -errno with *what naming the thing. */
struct tree {
	const struct cell_spec *spec;
	int userns_fd;	     /* the ids of layers; FD_NONE: as they are */
	const int *owner_ns; /* of mounts that have others */
	bool detached;	     /* lowers are taken along as mounts, not opened where they lie */
	const char *upper;   /* directory of the uppers in the sandbox's own */
	const struct cell_change *change; /* NULL: there is no generation before this one */
	const int *same_fd; /* what is taken over, in the mount namespace of the last generation */
	unsigned generation;
	int fds_fd;		   /* /proc/self/fd: what descriptors are called in options */
	struct layer_roots roots;  /* state directory and pool, with the sandbox's ids */
	int stage_fd;		   /* where mounts are put together */
	int keel_fd;		   /* the keel's root */
	int root_fd;		   /* the merged root, also the first of mount_fd */
	int mount_fd[CELL_MOUNTS]; /* of the spec */
	int proc_fd, dev_fd, sys_fd;
	int knobs_fd;				/* /proc/sys below what makes it read-only */
	int lower_fd[CELL_MOUNTS][CELL_LOWERS]; /* outside the state directory */
	char what[248];
};

void tree_init(struct tree *t, const struct cell_spec *spec, int userns_fd, const int *owner_ns);
/* First what needs nothing of the sandbox's own, while the warden still makes the uppers. */
int tree_stage(struct tree *t);
int tree_keel(struct tree *t);
int tree_proc(struct tree *t);
int tree_dev(struct tree *t);
/* Take hold of what lies outside, where the host's paths can be seen. */
int tree_gather(struct tree *t);
/* Whether mount i is taken over. */
bool tree_is_same(const struct tree *t, int i);
/* All that are, as copies: the kernel makes them only of what is mounted where we are. */
int tree_take_over(struct tree *t);
/* Then the root on the keel, the other mounts in it, and the parts from the stage. */
int tree_mounts(struct tree *t);
int tree_place(struct tree *t);

/* What is to be found at a mount point of the finished tree. */
struct fixed_mount {
	const char *path;
	const char *type; /* NULL: whatever the host has there */
	const char *root; /* which part of its file system; NULL: any */
	unsigned attrs;	  /* RAW_ATTR_* that it has at least */
	bool optional;	  /* covers something that not every kernel has */
};
enum { FIXED_MOUNTS = 64 };
/* Those of /proc, /dev and /sys; returns how many. */
int devproc_expects(const struct cell_spec *s, struct fixed_mount out[FIXED_MOUNTS]);
/* That of mount i of the spec. */
struct fixed_mount tree_expects(const struct cell_spec *s, int i);

/* The user namespace whose map mount i of the spec has. */
int tree_userns(const struct tree *t, int i);
/* Attach a new mount on the stage, under a name of its own. */
int tree_put(struct tree *t, int mount_fd, const char *name);
/* Append the mounts of the spec to fds, which has room for CELL_MOUNTS more; how many. */
int tree_fds(const struct tree *t, int *fds);
/* The other way round: takes the descriptors. -EBADMSG where they are not as many. */
int tree_take_fds(const struct cell_spec *s, int to[CELL_MOUNTS], int *fds, int n);
/* Name of the mount point on the keel that a generation has. */
const char *tree_slot(unsigned generation);

/* renew.c: the next generation. */
int renew(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
	  struct cell_next *ret, struct err *e);
/* What of it can be done before anybody asks. */
void renew_ahead(struct cell *c, const struct cell_spec *spec);
/* seal.c: the end of the last one. */
int seal(struct cell *c, const struct cell_next *left, const bool *which, struct err *e);
/* End the helpers of the last one and of the next. */
void renew_reap(struct cell *c);

/* adopt.c */
int adopt(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e);
