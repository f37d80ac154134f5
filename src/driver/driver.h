/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of an isolation driver. The warden knows only this table, not the mechanism behind
 * it. ns/ implements it with namespaces and control groups; others may follow. Every driver gives
 * the warden a stream to an init inside, which speaks the init protocol (docs/protocol.md).
 *
 * Order of calls: create, verify, perhaps claim; renew, enter and seal any number of times; kill,
 * reap, destroy. destroy is legal once, after any failed or finished call.
 *
 * A *generation* is one set of the sandbox's file systems. Processes, network and host name last as
 * long as the cell. renew makes the next generation from other layers, and enter moves init into
 * it. The driver never changes a generation under a running process.
 *
 * Not every mechanism can do everything. The driver's `has` lists the features of its mechanism.
 * The cell's `has` lists the features that this host allows. The warden refuses a request that
 * needs more, before it makes anything (warden/features.h). A function that belongs to a feature is
 * NULL in a driver without that feature.
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
struct generation; /* a generation that init has not entered yet, or has left */

/* Features, as bits. */
enum {
	HAS_FDS = 1 << 0,	  /* descriptors pass to and from init */
	HAS_RENEW = 1 << 1,	  /* renew, enter, stay, drop: snapshots and rollbacks */
	HAS_UPPER = 1 << 2,	  /* changed files are visible from outside: diff, layers */
	HAS_EXEC_EVENTS = 1 << 3, /* a listener reports every exec inside */
	HAS_NETWORK = 1 << 4,	  /* net_fds: a gateway can serve the sandbox */
	HAS_FREEZE = 1 << 5,	  /* freeze */
	HAS_TERMINAL = 1 << 6,	  /* terminal */
	HAS_PORTS = 1 << 7,	  /* init dials ports inside */
	HAS_CLAIM = 1 << 8,	  /* claim: a sandbox can be built before it has an owner */
	HAS_VERIFY = 1 << 9,	  /* verify; and processes can be checked by pid */
	HAS_GROUPS = 1 << 10,	  /* group_*: tell the processes of a call apart from outside */
	HAS_MEMORY = 1 << 11,	  /* limits */
	HAS_CPU = 1 << 12,
	HAS_PIDS = 1 << 13,
	HAS_SPARE = 1 << 14, /* init can make a child before its command is known */
};

/* 0: no limit. */
struct cell_limits {
	uint64_t memory;    /* bytes, with tmpfs and swap */
	uint64_t pids;	    /* processes and threads */
	uint64_t cpu_milli; /* thousandths of one CPU */
	uint64_t files;	    /* open files of one process */
	uint64_t disk;	    /* bytes written to the sandbox's own layers */
	bool best_effort;   /* continue without limits that cannot be enforced */
};

enum { CELL_WHY = 280, CELL_UNENFORCED = 4 };

/* A limit that this host cannot enforce. */
struct cell_unenforced {
	const char *limit;
	char why[CELL_WHY];
};

/* Sockets in the sandbox's network, for its gateway. A host without IPv6 lacks the last two. */
enum net_fd { NET_DIAG, NET_TCP4, NET_UDP4, NET_TCP6, NET_UDP6, NET_FDS };

enum { LAYER_ID = 24 }; /* size of a layer id with its terminator */
enum { CELL_LOWERS = 4, CELL_LAYERS = LIMIT_LAYERS, CELL_MOUNTS = LIMIT_MOUNTS + 16 };

struct cell_mount {
	enum mount_kind kind;
	const char *dest;		/* absolute path inside */
	const char *lower[CELL_LOWERS]; /* absolute paths outside; topmost first */
	int nlower;
	bool has_owner;
	uint32_t owner; /* uid outside that maps to the sandbox's user inside */
};

/*
 * Work for the caller of create while it would otherwise wait. `building` runs when the uppers
 * exist, while the file systems are being assembled.
 */
struct cell_meanwhile {
	int (*building)(void *ctx, struct cell *c, struct err *e);
	void *ctx;
};

/*
 * Stages at which the warden has a new cell verified from outside. A stage includes all earlier
 * ones, and the driver verifies each thing once. Only init runs inside before VERIFY_ALL is done.
 */
enum verify_stage {
	VERIFY_BUILT, /* create has returned */
	VERIFY_ORDER, /* init has said hello and has received no order yet */
	VERIFY_HELLO, /* init has said hello */
	VERIFY_ALL,   /* init is idle, or its first command waits for permission to run */
};

struct cell_spec {
	const char *id;
	const char *hostname;
	const char *state;   /* absolute path of the state directory */
	const char *dir;     /* absolute path of the sandbox's directory, below it */
	int dir_fd;	     /* descriptor of dir */
	const char *storage; /* absolute path of the storage (store/storage.h), or NULL */
	const char *disk;    /* absolute path of the directory for uppers: dir, or one in storage */
	int disk_fd;	     /* descriptor of disk */
	const char *init;    /* path of the cay-init program */
	bool rootful;
	uint32_t uid_base; /* rootful: first uid and gid of the sandbox's range */
	uint32_t user;	   /* the sandbox's user inside */
	uint64_t files;	   /* soft limit of open files for processes inside; 0: same as ours */
	struct cell_mount mounts[CELL_MOUNTS]; /* the root is first */
	int nmounts;
	/* Sealed layers between the upper and the lowers of the mounts: ids, topmost first. */
	const char *layers[CELL_LAYERS];
	int nlayers;
	struct cell_limits limits;
	bool nosuid;  /* no mount has setuid programs */
	bool network; /* the sandbox has a gateway */
	bool nested;  /* commands may make their own namespaces and mounts */
	struct cell_meanwhile meanwhile;
};

/* How the running generation's mounts continue in the next one. */
struct cell_change {
	bool same[CELL_MOUNTS];	 /* taken over unchanged */
	bool below[CELL_MOUNTS]; /* their uppers become the topmost layer below */
};

/* Callbacks from the driver to the warden. */
struct cell_events {
	/* Send this frame to init, without fields. Takes fds. 0 or -errno. */
	int (*order)(void *w, uint8_t type, int *fds, int nfds);
	/* The answer to enter, if init itself does not send MSG_ENTERED. err: errno or 0. */
	void (*entered)(void *w, int err);
	void *w;
};

/* The kernel's counters for a group. */
struct group_counts {
	uint64_t oom_kills; /* processes killed for lack of memory */
	uint64_t oom_call;  /* more than 0: the call's own memory limit was reached */
	uint64_t pids_hits; /* forks refused */
};

/* One running isolation, as the warden sees it. A driver keeps its own data behind it. */
struct cell {
	unsigned has;	     /* features of the driver that this host allows */
	pid_t pid;	     /* pid of init outside; 0: init is gone, or its pid is not visible */
	unsigned generation; /* number of the running generation */
	uint64_t nproc;	     /* RLIMIT_NPROC that replaces a limit on processes; 0: none */
	struct cell_unenforced unenforced[CELL_UNENFORCED];
	int nunenforced;
	bool has_quota;	   /* the file system itself enforces the disk limit */
	bool verify_first; /* init hides itself after its first order: VERIFY_ORDER first */
	bool verified;	   /* VERIFY_ALL is done */
	bool refused;	   /* verification failed: the cell was built wrong */
};

struct driver {
	const char *name;
	const char *boundary; /* what separates the sandbox from the host */
	unsigned has;

	/* Prefetch what create will need. May be NULL. */
	void (*prefetch)(void);
	/*
	 * On return the file systems are complete, and init has started or is about to. spec and
	 * events must last as long as the cell. *ret is set even if create fails: destroy it.
	 */
	int (*create)(const struct cell_spec *spec, const struct cell_events *events,
		      struct cell **ret, struct err *e);
	/* call: the first command, which init has made and which waits; 0: none. */
	int (*verify)(struct cell *c, enum verify_stage stage, pid_t call, struct err *e);
	/*
	 * Claim a cell that was built before it had an owner, and in which nothing has run: set its
	 * file times to now and, if renamed, its host name to that of spec.
	 */
	int (*claim)(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e);

	/*
	 * Make the next generation over the layers of spec, with new uppers in the directory `next`
	 * of the sandbox's directory. The running generation is not touched. If its uppers become a
	 * layer, nothing may change in them from now on.
	 */
	int (*renew)(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
		     struct generation **ret, struct err *e);
	/* Do the part of the next renew that does not depend on the request. */
	void (*renew_ahead)(struct cell *c, const struct cell_spec *spec);
	/*
	 * Tell init to enter g; from now on g stands for the last generation. Call it again if init
	 * reports that it is busy. After init has entered, the caller moves each new upper to
	 * `upper`.
	 */
	int (*enter)(struct cell *c, struct generation *g, struct err *e);
	/* Init did not enter: g stands for the new generation again, as before enter. */
	void (*stay)(struct cell *c, struct generation *g);
	/*
	 * Make sure that nothing can write to a file in these mounts of the last generation,
	 * whatever a process inside has kept open. 1: a file is still open for writing. Called in a
	 * child of the warden that does little else: without root it enters other namespaces.
	 */
	int (*seal)(struct cell *c, const struct generation *left, const bool *which,
		    struct err *e);
	/* The descriptors that seal needs. Returns their number. */
	int (*keep_fds)(const struct cell *c, const struct generation *left, int *fds, int most);
	void (*drop)(struct cell *c, struct generation *g);
	/* In a child: become a user that may read all files of the uppers. 0 or -errno. */
	int (*as_owner)(struct cell *c);

	/* Make a named group for the processes of one call. *ret_fd: what init needs for it. */
	int (*group_open)(struct cell *c, const char *name, int *ret_fd);
	/* Limit a group's memory. *ret_entry: where its first process writes "0", or FD_NONE. */
	int (*group_limit)(struct cell *c, const char *name, uint64_t bytes, int *ret_entry,
			   char why[CELL_WHY]);
	int (*group_kill)(struct cell *c, const char *name);
	void (*group_count)(struct cell *c, const char *name, struct group_counts *ret);
	/* Processor time that the group's processes have used, in microseconds. */
	int (*group_cpu)(struct cell *c, const char *name, uint64_t *ret_us);
	int (*group_pids)(struct cell *c, const char *name, long *pids, int most);
	/* -EBUSY while the group has processes. */
	int (*group_remove)(struct cell *c, const char *name);
	/* Returns when every process is frozen, or runs again. -ETIME after wait_ms, all thawed. */
	int (*freeze)(struct cell *c, bool on, int wait_ms);

	/*
	 * The number of init's children, at most 2; *ret_pid: the pid of an only child. Everything
	 * inside descends from init. -errno: the host cannot tell.
	 */
	int (*others)(struct cell *c, long *ret_pid);
	/* Pids outside of all processes, init first. Returns their number. */
	int (*pids)(struct cell *c, long *pids, int most);

	/* A new terminal inside. 0 or -errno. */
	int (*terminal)(struct cell *c, int *ret_master, int *ret_slave);
	/* The stream to init, once; the caller owns it. */
	int (*stream)(struct cell *c);
	/* O_PATH of the root of the running generation, borrowed; FD_NONE: not visible. */
	int (*root)(const struct cell *c);
	/* NET_FDS sockets, borrowed; missing ones are FD_NONE. */
	const int *(*net_fds)(const struct cell *c);

	/* Kill every process inside. */
	void (*kill)(struct cell *c);
	/* Kill every process inside and wait for the last one. */
	void (*reap)(struct cell *c);
	/* The same, and free everything, including the cell. */
	int (*destroy)(struct cell *c, struct err *e);
};

/* The driver of this name, or NULL. */
const struct driver *driver_find(const char *name);
