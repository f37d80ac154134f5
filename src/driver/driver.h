/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an isolation driver must do. The warden knows this table and nothing of the mechanism
 * behind it: ns/ fills it with namespaces and control groups, others may follow. Whatever the
 * mechanism, the driver gives a stream to an init inside that speaks the init protocol
 * (docs/protocol.md).
 *
 * Order of calls: create, verify, perhaps claim; renew, enter and seal any number of times; kill,
 * reap, destroy. destroy is legal after any failed or finished call, once.
 *
 * A *generation* is one set of the sandbox's file systems. Processes, network and host name last
 * as long as the cell. renew makes the next generation from other layers, and enter moves init
 * into it. The driver never changes a generation under a running process.
 *
 * Not every mechanism can do everything. `has` of the driver says what its mechanism can do, and
 * `has` of the cell what this host allows of it. The warden refuses a request that needs more
 * before it makes anything (warden/features.h). A function that belongs to a feature is NULL in a
 * driver without that feature.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "wire/proto.h"

struct cell;
struct generation; /* one that nobody has entered yet, or that init has left */

/* Features, by bits. */
enum {
	HAS_FDS = 1 << 0,	  /* descriptors pass to and from init */
	HAS_RENEW = 1 << 1,	  /* renew, enter, stay, drop: snapshots and rollbacks */
	HAS_UPPER = 1 << 2,	  /* changed files can be seen from outside: diff, layers */
	HAS_EXEC_EVENTS = 1 << 3, /* a listener tells of every exec inside */
	HAS_NETWORK = 1 << 4,	  /* net_fds: a gateway can be put in front */
	HAS_FREEZE = 1 << 5,	  /* freeze */
	HAS_TERMINAL = 1 << 6,	  /* terminal */
	HAS_PORTS = 1 << 7,	  /* init dials ports inside */
	HAS_CLAIM = 1 << 8,	  /* claim: it can be made ahead of its owner */
	HAS_VERIFY = 1 << 9,	  /* verify, and processes that can be checked by their pids */
	HAS_GROUPS = 1 << 10,	  /* group_*: processes of a call are told apart from outside */
	HAS_MEMORY = 1 << 11,	  /* limits */
	HAS_CPU = 1 << 12,
	HAS_PIDS = 1 << 13,
	HAS_SPARE = 1 << 14, /* init can make a child ahead of its command */
};

/* 0: no limit. */
struct cell_limits {
	uint64_t memory;    /* bytes, with tmpfs and swap */
	uint64_t pids;	    /* processes and threads */
	uint64_t cpu_milli; /* thousandths of one CPU */
	uint64_t files;	    /* open files of one process */
	uint64_t disk;	    /* bytes written to the sandbox's own layers */
	bool best_effort;   /* go on without what cannot be enforced */
};

enum { CELL_WHY = 280, CELL_UNENFORCED = 4 };

/* A limit that this host cannot enforce. */
struct cell_unenforced {
	const char *limit;
	char why[CELL_WHY];
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
	int (*building)(void *ctx, struct cell *c, struct err *e);
	void *ctx;
};

/*
 * When the warden has a new cell verified from outside. A stage includes all before it, and the
 * driver verifies each thing once. Nothing but init runs inside before VERIFY_ALL is done.
 */
enum verify_stage {
	VERIFY_BUILT, /* create has returned */
	VERIFY_ORDER, /* init has said hello, and has had no order yet */
	VERIFY_HELLO, /* init has said hello */
	VERIFY_ALL,   /* init has nothing to do, or its first command waits to be let go on */
};

struct cell_spec {
	const char *id;
	const char *hostname;
	const char *state; /* absolute path of the state directory */
	const char *dir;   /* absolute path of the sandbox's directory, below it */
	int dir_fd;	   /* of it */
	const char *pool;  /* absolute path of the pool (store/storage.h), or NULL */
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
	bool nested;  /* commands may make namespaces and mounts of their own */
	struct cell_meanwhile meanwhile;
};

/* What becomes of the running generation's mounts in the next one. */
struct cell_change {
	bool same[CELL_MOUNTS];	 /* taken over as they are */
	bool below[CELL_MOUNTS]; /* their uppers lie below, as the topmost layer */
};

/* What a driver asks of the warden, or tells it. */
struct cell_events {
	/* Send init this frame, without fields. Takes fds. 0 or -errno. */
	int (*order)(void *w, uint8_t type, int *fds, int nfds);
	/* The answer to enter, where init itself does not send MSG_ENTERED. err: errno or 0. */
	void (*entered)(void *w, int err);
	void *w;
};

/* What the kernel has counted so far for a group. */
struct group_counts {
	uint64_t oom_kills; /* processes killed for lack of memory */
	uint64_t oom_call;  /* more than 0: the call's own memory limit was reached */
	uint64_t pids_hits; /* forks refused */
};

/* One running isolation, as far as the warden may know it. A driver puts its own behind it. */
struct cell {
	unsigned has;	     /* what this host allows of the driver's features */
	pid_t pid;	     /* init, as it is called out here; 0: it is gone, or not to be seen */
	unsigned generation; /* number of the running one */
	uint64_t nproc;	     /* RLIMIT_NPROC that stands in for a limit on processes; 0: none */
	struct cell_unenforced unenforced[CELL_UNENFORCED];
	int nunenforced;
	bool has_quota;	   /* the file system itself holds the limit on disk */
	bool verify_first; /* init closes itself to us with its first order: VERIFY_ORDER before */
	bool verified;	   /* VERIFY_ALL is done */
	bool refused;	   /* it was built, and is not what it must be */
};

struct driver {
	const char *name;
	const char *boundary; /* what stands between the sandbox and the host */
	unsigned has;

	/* Find already what create will need. May be NULL. */
	void (*prefetch)(void);
	/*
	 * The file systems are complete, and init is about to start, or has. spec and events last
	 * as long as the cell. *ret is set at once, also where create fails: destroy it.
	 */
	int (*create)(const struct cell_spec *spec, const struct cell_events *events,
		      struct cell **ret, struct err *e);
	/* call: the first command, which init has made and which waits; 0: none. */
	int (*verify)(struct cell *c, enum verify_stage stage, pid_t call, struct err *e);
	/*
	 * The cell was made before anybody asked for it, and nothing has run in it: set its file
	 * times to now, and where renamed its host name to that of spec.
	 */
	int (*claim)(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e);

	/*
	 * Make the next generation over the layers of spec, with new uppers in the directory
	 * `next` of the sandbox's own. The running generation is not touched; where it will lie
	 * below, nothing may change in it any more.
	 */
	int (*renew)(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
		     struct generation **ret, struct err *e);
	/* Do what of the next renew can be done before it is asked for. */
	void (*renew_ahead)(struct cell *c, const struct cell_spec *spec);
	/*
	 * Tell init to enter it; from now on g stands for the last generation. Again, where init
	 * said that it is busy. Once init has entered, each new upper must become the upper.
	 */
	int (*enter)(struct cell *c, struct generation *g, struct err *e);
	/* Init did not enter: g stands for the generation that was made, as before enter. */
	void (*stay)(struct cell *c, struct generation *g);
	/*
	 * Make sure that nothing writes to a file of these mounts of the last generation any more,
	 * whatever a process inside has kept open. 1: something has one open for writing. Called
	 * in a child of the warden that does little else: without root it enters other namespaces.
	 */
	int (*seal)(struct cell *c, const struct generation *left, const bool *which,
		    struct err *e);
	/* The descriptors that seal needs: how many. */
	int (*keep_fds)(const struct cell *c, const struct generation *left, int *fds, int most);
	void (*drop)(struct cell *c, struct generation *g);
	/* In a child: become the one who may read all files of the uppers. 0 or -errno. */
	int (*as_owner)(struct cell *c);

	/* A group for the processes of one call, by name. *ret_fd: what init puts it into. */
	int (*group_open)(struct cell *c, const char *name, int *ret_fd);
	/* Memory of one group. *ret_entry: what its first process writes "0" to, or FD_NONE. */
	int (*group_limit)(struct cell *c, const char *name, uint64_t bytes, int *ret_entry,
			   char why[CELL_WHY]);
	int (*group_kill)(struct cell *c, const char *name);
	void (*group_count)(struct cell *c, const char *name, struct group_counts *ret);
	int (*group_pids)(struct cell *c, const char *name, long *pids, int most);
	/* -EBUSY while processes are in it. */
	int (*group_remove)(struct cell *c, const char *name);
	/* Every process stands still when this returns, or goes on. -ETIME after wait_ms, thawed.
	 */
	int (*freeze)(struct cell *c, bool on, int wait_ms);

	/*
	 * How many processes init has as children, at most 2; *ret_pid: of the only one. Everything
	 * inside descends from init. -errno: the host does not tell.
	 */
	int (*others)(struct cell *c, long *ret_pid);
	/* Pids outside of all processes, init first: how many. */
	int (*pids)(struct cell *c, long *pids, int most);

	/* A new terminal inside. 0 or -errno. */
	int (*terminal)(struct cell *c, int *ret_master, int *ret_slave);
	/* The stream to init, once; the caller owns it. */
	int (*stream)(struct cell *c);
	/* O_PATH of the root of the running generation, borrowed; FD_NONE: none to be seen. */
	int (*root)(const struct cell *c);
	/* NET_FDS sockets, borrowed, FD_NONE at the end where there are fewer. */
	const int *(*net_fds)(const struct cell *c);

	/* End every process inside. */
	void (*kill)(struct cell *c);
	/* End them all and wait for the last one. */
	void (*reap)(struct cell *c);
	/* The same, and free everything, also the cell. */
	int (*destroy)(struct cell *c, struct err *e);
};

/* The driver of this name, or NULL. */
const struct driver *driver_find(const char *name);
