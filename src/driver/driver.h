/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an isolation driver must do. The warden knows only this table; ns/ fills one, vm/ and
 * others may follow. Whatever the mechanism, what comes back is a stream to an init inside
 * that speaks the init protocol (docs/protocol.md).
 *
 * Order: create, the looks, perhaps adopt, renew and seal any number of times, kill, destroy.
 * destroy is legal after any failed or finished call, once.
 *
 * A *generation* is one set of the sandbox's file systems. Processes, network and host name last
 * as long as the cell; renew makes the next generation from other layers, and whoever enters it
 * sees those. Nothing is ever changed under a running process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
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

enum { LAYER_ID = 24 }; /* its name, with the end */
enum { CELL_LOWERS = 4, CELL_LAYERS = LIMIT_LAYERS, CELL_MOUNTS = LIMIT_MOUNTS + 16 };

struct cell_mount {
	enum mount_kind kind;
	const char *dest;		/* absolute, inside */
	const char *lower[CELL_LOWERS]; /* absolute, outside; topmost first */
	int nlower;
	bool has_owner;
	uint32_t owner; /* uid outside that is the sandbox's user inside */
};

/*
 * What whoever makes a cell does while it would only wait for it: once the uppers are there and
 * the file systems are put together.
 */
struct cell_meanwhile {
	int (*building)(void *ctx, struct err *e);
	void *ctx;
};

/*
 * Looks from outside at a new cell, each once. Until the last one nothing but init may run inside.
 * Built comes first. Without root, init closes itself to us with its first order: then open comes
 * before that order, else when what it has made of it waits.
 */
enum cell_look {
	LOOK_BUILT, /* mounts, maps and namespaces: final when create returns */
	LOOK_INIT,  /* what init has become, once it has said hello */
	LOOK_OPEN,  /* the descriptors that it holds while it waits */
	LOOKS,
};

struct birth;

struct cell_spec {
	const char *id;
	const char *hostname;
	const char *state; /* absolute path of the state directory */
	const char *dir;   /* absolute path of the sandbox's directory, below it */
	int dir_fd;	   /* of it */
	const char *pool;  /* absolute path of the pool (store/pool.h), or NULL */
	const char *disk;  /* absolute path of the directory for uppers: dir, or one in the pool */
	int disk_fd;	   /* of it */
	const char *init;  /* path of the cay-init program */
	bool rootful;
	uint32_t uid_base; /* rootful: first uid and gid of the sandbox's range */
	uint32_t user;	   /* the sandbox's user inside */
	uint64_t files;	   /* open files that a process inside may have (soft limit); 0: as we */
	struct cell_mount mounts[CELL_MOUNTS]; /* the root first */
	int nmounts;
	/* Sealed layers between the upper and the lowers of the mounts: ids, topmost first. */
	const char *layers[CELL_LAYERS];
	int nlayers;
	struct cell_limits limits;
	bool nosuid;  /* no mount has setuid programs */
	bool network; /* has a gateway */
	struct cell_meanwhile meanwhile;
};

/* What the driver keeps to make the next generation. */
struct cell_keep {
	int mount_ns; /* the running one, where it was put together: the next begins with a copy */
	int outer_ns; /* user namespace that owns it; FD_NONE: ours */
	int user_ns;  /* user namespace of the workload */
	int owner_ns[CELL_MOUNTS]; /* id map of a mount with an owner of its own */
	int mount_fd[CELL_MOUNTS]; /* those of the generation that init is in */
	unsigned generation;	   /* the running one */
	pid_t ending[16]; /* helpers that made the last generations and let go of things; 0: none */
	pid_t ready;	  /* that waits for the order to make the next one; 0: none */
	int ready_fd;	  /* to it */
};

/* What becomes of the running generation's mounts in the next one. */
struct cell_change {
	bool same[CELL_MOUNTS];	 /* taken over as they are */
	bool below[CELL_MOUNTS]; /* their uppers lie below, as the topmost layer */
};

/* A generation that nobody has entered yet, or that has been left. */
struct cell_next {
	int mount_ns;		   /* to enter */
	int base_ns;		   /* where it was put together */
	int root_fd;		   /* its root, to be changed to then */
	int devpts_fd;		   /* where terminals are made in it */
	int mount_fd[CELL_MOUNTS]; /* by mount */
	int helper_fd; /* who made it stays until this is closed: it has much to let go of then */
	unsigned generation;
};

/* One running isolation. Descriptors are FD_NONE where the driver has no such thing. */
struct cell {
	pid_t pid;
	int pidfd;
	int stream_fd; /* to init; the warden takes it */
	int root_fd;   /* O_PATH of the root inside */
	int devpts_fd; /* where terminals are made */
	int mount_ns;  /* of the generation that init is in */
	struct cgroup cgroup;
	bool has_cgroup;
	uint64_t nproc; /* RLIMIT_NPROC that stands in for the group's limit; 0: none */
	struct cell_unenforced unenforced[4];
	int nunenforced;
	struct cell_keep keep;
	bool has_quota;	      /* the file system itself holds the limit on disk */
	struct birth *birth;  /* what looks compare with; NULL: all are done */
	bool refused;	      /* it was built, and is not what it must be */
	int net_fds[NET_FDS]; /* FD_NONE without a network */
};

static inline void cell_init(struct cell *c)
{
	*c = (struct cell){ .pidfd = FD_NONE,
			    .stream_fd = FD_NONE,
			    .root_fd = FD_NONE,
			    .devpts_fd = FD_NONE,
			    .mount_ns = FD_NONE,
			    .cgroup = cgroup_none,
			    .keep = { .mount_ns = FD_NONE,
				      .outer_ns = FD_NONE,
				      .user_ns = FD_NONE,
				      .ready_fd = FD_NONE } };
	for (int i = 0; i < CELL_MOUNTS; i++)
		c->keep.owner_ns[i] = c->keep.mount_fd[i] = FD_NONE;
	for (int i = 0; i < NET_FDS; i++)
		c->net_fds[i] = FD_NONE;
}

static inline void cell_next_init(struct cell_next *n)
{
	*n = (struct cell_next){ .mount_ns = FD_NONE,
				 .base_ns = FD_NONE,
				 .root_fd = FD_NONE,
				 .devpts_fd = FD_NONE,
				 .helper_fd = FD_NONE };
	for (int i = 0; i < CELL_MOUNTS; i++)
		n->mount_fd[i] = FD_NONE;
}

static inline void cell_next_done(struct cell_next *n)
{
	fd_close(&n->mount_ns);
	fd_close(&n->base_ns);
	fd_close(&n->root_fd);
	fd_close(&n->devpts_fd);
	for (int i = 0; i < CELL_MOUNTS; i++)
		fd_close(&n->mount_fd[i]);
	fd_close(&n->helper_fd);
}

/* Changes places with the one that init is in. */
static inline void cell_swap(struct cell *c, struct cell_next *n)
{
	struct cell_next was = { .mount_ns = c->mount_ns,
				 .base_ns = c->keep.mount_ns,
				 .root_fd = c->root_fd,
				 .devpts_fd = c->devpts_fd,
				 .helper_fd = n->helper_fd,
				 .generation = c->keep.generation };

	memcpy(was.mount_fd, c->keep.mount_fd, sizeof was.mount_fd);
	c->mount_ns = n->mount_ns;
	c->keep.mount_ns = n->base_ns;
	c->keep.generation = n->generation;
	c->root_fd = n->root_fd;
	c->devpts_fd = n->devpts_fd;
	memcpy(c->keep.mount_fd, n->mount_fd, sizeof n->mount_fd);
	*n = was;
}

struct driver {
	const char *name;
	/* The file systems are whole, and init is about to start, or has. spec lasts as long as
	 * ret. */
	int (*create)(const struct cell_spec *spec, struct cell *ret, struct err *e);
	/* command: one that init has made and that waits to be let go on; 0: none. */
	int (*look)(struct cell *c, enum cell_look what, pid_t command, struct err *e);
	/*
	 * It was made before anybody asked for it, and nothing has run in it: what tells its age
	 * is as of now, and where renamed it has the host name of spec.
	 */
	int (*adopt)(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e);
	/*
	 * The next generation over the layers of spec, with new uppers in the directory `next` of
	 * the sandbox's own. The one that is running is not touched, but where it lies below
	 * nothing may be changed in it any more. The caller makes init enter it and, once that is
	 * done, each new upper the upper.
	 */
	int (*renew)(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
		     struct cell_next *ret, struct err *e);
	/* Do what of the next renew can be done before it is asked for. */
	void (*renew_ahead)(struct cell *c, const struct cell_spec *spec);
	/*
	 * No file of these mounts of a generation that was left is ever written again, whoever has
	 * kept what of it. 1: somebody has one open for writing. For a child of the warden's that
	 * does little else: without root it enters other namespaces.
	 */
	int (*seal)(struct cell *c, const struct cell_next *left, const bool *which, struct err *e);
	/* Ends every process inside. */
	void (*kill)(struct cell *c);
	/* Ends them all and waits for the last one. */
	void (*reap)(struct cell *c);
	/* The same, and lets go of everything. */
	int (*destroy)(struct cell *c, struct err *e);
};

extern const struct driver ns_driver;
