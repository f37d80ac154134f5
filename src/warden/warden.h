/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One warden owns one sandbox. It builds the sandbox through a driver, runs calls for clients,
 * writes the trace, and removes everything at the end.
 *
 *   client --frames--> warden --frames + descriptors--> init --> command
 *                        ^--- pipes or a terminal: the command's stdio ---'
 *
 * The warden holds the outer end of every stdio pipe and terminal. It reads output only while the
 * client's backlog is low, and accepts stdin only within the credit that it gave the client. So no
 * amount of data makes the warden grow. It is single-threaded; everything runs on `loop`.
 */
#pragma once

#include <sys/stat.h>

#include "base/clock.h"
#include "driver/driver.h"
#include "loop/conn.h"
#include "store/layer_open.h"
#include "trace/log.h"
#include "warden/changes/changes.h"
#include "warden/changes/changes_base.h"
#include "warden/changes/walk.h"
#include "warden/client/who.h"
#include "warden/lifecycle.h"
#include "warden/watch/watch.h"

struct warden;
struct call;
struct generation_switch;
struct record;
struct viewer;
struct lease_wait;

/* A client's connection; the first is the creator's. */
struct client {
	struct warden *w;
	struct conn conn;
	bool creator;
	bool greeted;
	unsigned version; /* protocol version */
	int pid;	  /* pid of the client's process when it connected */
	uint32_t uid;
	bool wants_destroyed; /* send C_DESTROYED on that channel when everything is gone */
	uint32_t destroy_chan;
	struct viewer *viewers; /* record.h */
	int nviewers;
	struct client *next;
};

/* Defaults of every call, from the build request. Owned texts. */
struct defaults {
	char **env; /* K=V, NULL-terminated */
	int nenv;
	char *cwd;
	char *user;
	uint64_t timeout_ms; /* for every call without its own timeout; 0: none */
};

/* Records of calls (record.h), oldest first. */
struct records {
	struct record *first, *last;
	int n;
};

/* A child that seals the last generation and removes its unused files. */
struct sweeper {
	struct warden *w;
	pid_t pid; /* 0: none */
	int pidfd;
	struct loop_io io;
};

/* A sealed layer, as open descriptors. It never changes. */
struct sealed {
	char id[LAYER_ID];
	int *fds; /* by mount, negative if it has none; owned. NULL: unused slot */
};

struct warden {
	struct loop loop;
	enum sandbox_state state;
	const struct driver *driver;
	struct cell_events events; /* callbacks for the driver */
	struct cell *cell;	   /* NULL: not built yet, or destroyed */
	struct cell_spec spec;
	char *texts[256]; /* texts that spec points to */
	int ntexts;
	char *program; /* path of the cay program */
	struct defaults defaults;
	bool ephemeral, rootful;
	int not_normal; /* -errno: could not enter the normal form (sys/process/normal.h) */
	bool kept;	/* the sandbox may outlive its creator */
	enum trace_level trace_level;
	enum profile profile;
	int lock_fd, dir_fd;
	int disk_fd;		  /* directory of upper, next and old: dir_fd, or one in storage */
	struct layer_roots roots; /* where to search layers */
	int layers_fd;		  /* where to make the sandbox's own layers */
	int uppers[CELL_MOUNTS], lowers[CELL_MOUNTS]; /* by mount; FD_NONE: not an overlay */
	char layers[CELL_LAYERS][LAYER_ID];	      /* layers of spec, which points here */
	struct sealed sealed[CELL_LAYERS];	      /* the same layers, open */
	int *layer_fds[CELL_MOUNTS]; /* layers between upper and lower, topmost first; borrowed */
	int nlayer_fds[CELL_MOUNTS];
	struct stat fresh[CELL_MOUNTS]; /* state of the uppers when they were made */
	unsigned made_in[CELL_MOUNTS];	/* generation that names their work directories */
	struct generation_switch
		*gen_switch; /* switch to the next generation; NULL: none in progress */
	struct generation_switch *unsealed; /* switched and answered; to be sealed next */
	struct sweeper sweepers[16];	    /* children that clean up after earlier generations */
	bool switched;			    /* has switched at least once, so it may do so again */
	struct loop_timer ahead_timer;

	struct conn init;
	bool init_greeted;
	struct trace trace;
	uint64_t created_event;
	struct watch *watch;
	struct loop_timer hello_timer; /* runs until init says hello */
	bool guarded;		       /* without exec events: the first command was checked */
	struct err refusal; /* why the warden refused the sandbox; kind ERR_NONE: it did not */
	struct walks walks; /* walk.h */
	struct changes_base bases[CELL_MOUNTS];
	uint64_t started_ns;

	int listen_fd;
	struct loop_io listen_io;
	struct loop_timer listen_timer; /* runs while descriptors are short */
	struct client *clients;
	int nclients;
	struct call *calls; /* running and lingering */
	int ncalls;
	uint32_t last_call, running;
	struct records records[2]; /* of plain calls, of detached calls */
	struct client *lease;	   /* lease.h: the client that has the lease, or NULL */
	struct lease_wait *lease_waits;
	bool alone;	 /* the sandbox is ending, and only init is left */
	int spare_group; /* control group made ahead for the first call; or FD_NONE */
	uint32_t last_group;
	struct spare *spare; /* call_spare.c: the child for the next call; NULL: none */
	uint32_t last_spare;
	struct loop_timer disk_timer;
	bool disk_full; /* the last measurement was above --disk */
	struct loop_io signal_io;
	/* ready.h */
	char *ready_dir; /* directory that lists it while unclaimed; NULL: built for an owner */
	int ready_fd;	 /* descriptor of that directory */
	struct loop_timer ready_timer;
	struct net *net;    /* NULL: no network */
	struct dial *dials; /* clients' requests for ports inside, in progress */
	uint32_t ndials, last_dial;
	struct stream *streams; /* stream.h */
	/* pause.h */
	uint64_t ttl_ms, idle_ms; /* 0: none */
	bool pauses;		  /* pause instead of ending when a time expires */
	bool ttl_over;
	bool expired; /* the sandbox ends because a time expired */
	struct loop_timer ttl_timer, idle_timer;
	uint64_t ttl_left_ns, idle_left_ns; /* time left while paused */
	uint64_t expires_at_ms;		    /* real time; 0: never, or paused */
	uint64_t paused_ns;
	const char *end_reason;
	enum end_cause end_cause;
	struct client *asking; /* client whose request is being handled; NULL: none */
	struct who ended_by;   /* process that asked for the end, if any */
	char failure[256];     /* text of warden_fail(), which end_reason points to */
	bool removed;	       /* its files are removed too: nothing is left to reconcile */
	/* execve(2), the warden's last act; tests replace it. */
	int (*exec)(const char *path, char *const argv[], char *const envp[]);
	struct loop_timer end_timer;
	struct call *final; /* call that ends the sandbox; its client is not answered yet */
	bool final_failed;
	struct err final_error;
	enum run_stage final_stage;
};

/* warden.c */
/* NULL: no memory. */
struct warden *warden_new(const struct driver *driver);
/* Open its loop. 0 or -errno. */
int warden_open(struct warden *w);
/* Legal for a sandbox that was never built, or that has ended. */
void warden_free(struct warden *w);
/* A failure that the sandbox cannot survive: end it. */
void warden_fail(struct warden *w, const char *what, int err);
/* Complete and write the event in progress. A failure ends the sandbox. 0 or -errno. */
int warden_trace_end(struct warden *w);
/* Add the client whose request is being handled to the event in progress. */
void warden_trace_asker(struct warden *w);

/*
 * guard.c: the warden verifies the sandbox from outside before any command runs. A client that
 * created the sandbox for one command does not wait: init prepares the command meanwhile, and the
 * command waits for the last check before its exec.
 */
void guard_look_ahead(void); /* read the facts to compare the first command with */
/* Verify everything that is visible at this stage. */
int guard_look(struct warden *w, enum verify_stage stage, struct err *e);
/* Before the first order to init: verify what is hidden afterwards. False: the sandbox ends. */
bool guard_first_order(struct warden *w);
/* Verify everything. Waits until init has said hello; init must be idle. */
int guard_whole(struct warden *w, struct err *e);
bool guard_is_whole(const struct warden *w);
/* Like guard_look(), but later: a failure ends the sandbox. */
void guard_look_later(struct warden *w, enum verify_stage stage);
void guard_await_hello(struct warden *w);
/* Init is gone, or useless, before it could be verified. */
void guard_lost_init(struct warden *w, const char *why);
/* For watch_guard(), or the call's gate. False: the sandbox ends. */
bool guard_first_exec(void *ctx, int pid);
/* The sandbox failed verification: write that to the trace, answer waiting clients, end it. */
void guard_refuse(struct warden *w, const struct err *e);

/* build.c: MSG_C_BUILD */
int warden_build(struct warden *w, struct str body, struct err *e);
/* The first step: read spec and defaults from the request. Makes and opens nothing. */
int build_parse(struct warden *w, struct str body, struct err *e);
/* Read one field that an owner may still choose after the build. */
int build_take_late(struct warden *w, struct field f, struct err *e);
/* Begin the trace with the request. */
int build_trace(struct warden *w, struct str body, struct err *e);
/* The last step: start running, with the clocks. If that cannot be traced, the sandbox ends. */
int build_begin(struct warden *w, struct err *e);
void warden_free_spec(struct warden *w);

/* layer_fds.c: the warden's own view of the layers, for finding changes */
int layers_open(struct warden *w, struct err *e);
/* Again, for other layers; moved: mounts with a new upper. */
int layers_move(struct warden *w, const bool *moved, struct err *e);
/* True if anything in a mount changed since its upper was made. */
bool layers_touched(const struct warden *w, int i);
/*
 * For watch_renames(). If all layers are on one file system, overlayfs shows a directory that only
 * the upper has with its inode number there, and all other directories with another number.
 */
bool layers_is_pure(void *ctx, const char *path, uint64_t ino);
/* True if the start of mount i was frozen: the host cannot change it. */
bool layers_frozen(const struct warden *w, int i);
void layers_close(struct warden *w);
/* Read the list of layers from TAG_LAYER fields. */
int layers_take(struct warden *w, int n, struct str id, struct err *e);

/* generation.c: MSG_C_SWITCH */
int generation_switch(struct client *c, uint32_t chan, struct str body, struct err *e);
void generation_entered(struct warden *w, int err);
/* Called when the client has disconnected, and when the sandbox ends. */
void generation_forget(struct warden *w, const struct client *c);
void generation_end(struct warden *w);
/* generation_ahead.c: when idle, prepare the next switch, if one is likely. */
void generation_ahead(struct warden *w);

/* clients.c */
int clients_listen(struct warden *w, struct err *e);
int client_adopt(struct warden *w, int fd, bool creator);
void client_free(struct client *c);
void clients_say_destroyed(struct warden *w);
/* The fields of MSG_C_ERROR. */
int client_put_error(struct buf *out, const struct err *e, enum run_stage stage);
int client_error(struct client *c, uint32_t chan, const struct err *e, enum run_stage stage);

/* init_link.c */
void init_link_events(struct warden *w); /* callbacks that let the driver reach init */
int init_link_open(struct warden *w, struct err *e);
/* For watch_renames(). */
int init_link_prepare(void *ctx, const struct watch_rename *r);

/* ps.c */
int ps_send(struct client *c, uint32_t chan);
uint64_t ps_rss_kb(const struct warden *w);
/* Pids outside of all processes in the sandbox, init first. Returns their number. */
int ps_pids(const struct warden *w, long *pids, int most);
/* b: read buffer. 0: the process is gone. */
long ps_inside_pid(long pid, struct buf *b);

/* end.c: end the sandbox on the next turn of the loop; then the loop stops. */
void warden_end(struct warden *w, enum end_cause cause, const char *reason);
/* After the loop has stopped: clean up what the sandbox left, if anything. */
void warden_settle(struct warden *w);
/* The same, then exit. */
void warden_leave(struct warden *w) __attribute__((noreturn));
