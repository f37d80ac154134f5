/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a launch: from clone3 to the exec of init.
 *
 * The child starts as root over new namespaces, but in the outer user namespace (U1; the host's own
 * if rootful). It builds the tree and pivots. Only then does it enter the workload's user namespace
 * (U2) with a mount namespace below it. That mount namespace inherits all mounts from a more
 * privileged one, so the kernel locks them: root inside can neither undo a mask nor remount
 * anything.
 *
 * The child pivots to the *keel*: an empty, read-only tmpfs with two mount points. The root that
 * the sandbox sees is mounted on one of them, and the child changes its root to it. The warden
 * keeps the first mount namespace (M1). The next generation is mounted on the other mount point, in
 * a copy of M1 (renew.c). Landlock's rule applies to the keel, because the keel is above every
 * generation, while each generation has another root directory. A process that escapes its changed
 * root finds only an empty, read-only directory, closed to all users inside.
 */
#pragma once

#include "driver/driver.h"
#include "driver/ns/netns.h"
#include "driver/ns/ns.h"
#include "store/layer_open.h"
#include "sys/ns/userns.h"

enum {
	/*
	 * RLIMIT_CORE. Not 0: if core_pattern is a pipe, 0 still starts the host's helper, and the
	 * kernel takes 1 as "none at all" (fs/coredump.c). No core file is that small either. If
	 * the limit cannot be raised to 1, it stays 0.
	 */
	LAUNCH_CORE = 1,
	LAUNCH_MAPS = 4,
};

struct launch {
	const struct cell_spec *spec;
	int setup_fd;  /* socket to the warden */
	int stream_fd; /* init's end of its stream */
	int ours[2];   /* the warden's ends of both */
	int net_fd;    /* socket for sending the gateway's sockets; FD_NONE: no network */
	bool grouped;  /* the child starts in the sandbox's own v2 group */
	int entries[CGROUP_CONTROLLERS]; /* cgroup.procs of groups to enter first, or FD_NONE */
	/* Made while the child already runs, and sent to it by launch_send_parts. */
	int init_fd;   /* memfd with init */
	int userns_fd; /* U2; FD_NONE when rootless */
	int netns_fd;  /* its network namespace; FD_NONE if rootless: the child makes it */
	struct netns net;
	/* U2's maps as seen from here, and init's ids outside. */
	struct idmap uids[LAUNCH_MAPS], gids[LAUNCH_MAPS];
	int nuids, ngids;
	uint32_t init_uid, init_gid; /* if rootless, also the warden's own */
	uint64_t core;		     /* RLIMIT_CORE inside */
};

/* The step to report if a network namespace cannot be made. */
#define LAUNCH_NETWORK "make the network namespace"
/* The step to report if a user cannot be mapped. */
#define LAUNCH_USER "map the user into the namespace"

/* The child's report: one message on setup_fd, with descriptors only on success. */
struct launch_report {
	int sys; /* 0: success; else the errno of the failure */
	char what[248];
};

/* The mounts of the spec follow, and if rootless U2. */
enum { LAUNCH_FD_ROOT, LAUNCH_FD_DEVPTS, LAUNCH_FD_M1, LAUNCH_FD_M2, LAUNCH_FDS };

/* True if mount i has an owner whose ids are swapped with the user's: then it has its own map. */
bool launch_has_map(const struct cell_spec *s, int i);
/*
 * Tell the child that the uppers exist, and send init, U2, its network and the maps of mounts. 0 or
 * -errno.
 */
int launch_send_parts(const struct launch *l, int sock, const int owner_ns[CELL_MOUNTS]);

/* Never returns. */
void launch_child(const struct launch *l) __attribute__((noreturn));

/* The steps, each in its own file. 0, or -errno with *what naming the step. */
struct tree {
	const struct cell_spec *spec;
	int userns_fd;			  /* id map of layers; FD_NONE: none */
	const int *owner_ns;		  /* id maps of mounts with an owner of their own */
	bool detached;			  /* open lowers as detached mounts, not by path */
	const char *upper;		  /* directory of the uppers in the sandbox's directory */
	const struct cell_change *change; /* NULL: this is the first generation */
	const int *same_fd; /* mounts that stay, in the last generation's mount namespace */
	unsigned generation;
	int fds_fd;		   /* /proc/self/fd: names of descriptors in mount options */
	struct layer_roots roots;  /* state directory and storage, with the sandbox's ids */
	int stage_fd;		   /* where mounts are assembled */
	int keel_fd;		   /* the keel's root */
	int root_fd;		   /* the merged root, also the first of mount_fd */
	int mount_fd[CELL_MOUNTS]; /* of the spec */
	int proc_fd, dev_fd, sys_fd;
	int void_fd;				/* an empty directory */
	int knobs_fd;				/* the kernel's /proc/sys, writable */
	int lower_fd[CELL_MOUNTS][CELL_LOWERS]; /* lowers outside the state directory */
	char what[248];
};

void tree_init(struct tree *t, const struct cell_spec *spec, int userns_fd, const int *owner_ns);
/* First the steps that need nothing from the warden, while it still makes the uppers. */
int tree_stage(struct tree *t);
int tree_keel(struct tree *t);
int tree_proc(struct tree *t);
/* /sys, and the limits in it and in /proc (facts.h). grouped: we are in the sandbox's group. */
int tree_facts(struct tree *t, bool grouped);
int tree_dev(struct tree *t);
/* Open what is outside, while the host's paths are visible. */
int tree_gather(struct tree *t);
/* True if mount i stays the same. */
bool tree_is_same(const struct tree *t, int i);
/* Copy the mounts that stay. The kernel copies only mounts of the current namespace. */
int tree_take_over(struct tree *t);
/* Then mount the root on the keel, the other mounts in it, and the parts from the stage. */
int tree_mounts(struct tree *t);
int tree_place(struct tree *t);

/*
 * With --nested, in the working directory that becomes the root: go to a copy of this mount
 * namespace in which that root lies on top of the keel. The kernel makes no user namespace for a
 * process whose root is not the topmost mount.
 */
int tree_on_top(void);

/* What verify must find at a mount point of the finished tree. */
struct fixed_mount {
	const char *path;
	const char *type; /* NULL: any type */
	const char *root; /* which part of its file system; NULL: any */
	unsigned attrs;	  /* RAW_ATTR_* that it must have at least */
	bool optional;	  /* covers a file that not every kernel has */
	bool maybe;	  /* may be missing: it only informs the sandbox of its limits */
};
enum { FIXED_MOUNTS = 32 };
/* The mounts of /proc, /dev and /sys, without the covers of procfs.h; returns their number. */
int devproc_expects(const struct cell_spec *s, struct fixed_mount out[FIXED_MOUNTS]);
/* The mount of entry i of the spec. */
struct fixed_mount tree_expects(const struct cell_spec *s, int i);

/* The user namespace with the id map of mount i. */
int tree_userns(const struct tree *t, int i);
/* Attach a new mount on the stage under this name. */
int tree_put(struct tree *t, int mount_fd, const char *name);
/*
 * Append the mounts of the spec to fds, which has room for CELL_MOUNTS more. Returns their number.
 */
int tree_fds(const struct tree *t, int *fds);
/* The reverse: takes ownership of the descriptors. -EBADMSG if their number is wrong. */
int tree_take_fds(const struct cell_spec *s, int to[CELL_MOUNTS], int *fds, int n);
/* Name of a generation's mount point on the keel. */
const char *tree_slot(unsigned generation);
