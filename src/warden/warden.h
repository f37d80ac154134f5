/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One warden owns one sandbox: it builds it through a driver, runs calls for clients, writes
 * the trace, and takes everything down again.
 *
 *   client --frames--> warden --frames + descriptors--> init --> command
 *                        ^--- pipes or a terminal: the command's stdio ---'
 *
 * The warden holds our end of every stdio pipe and terminal. Output is read only while the
 * client's backlog is low, and stdin is taken only as far as the client was given credit, so
 * no amount of data makes the warden grow. It is single-threaded; everything runs on `loop`.
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
#include "warden/client/who.h"
#include "warden/lifecycle.h"
#include "warden/watch/watch.h"

struct warden;
struct call;
struct turn;
struct record;
struct viewer;
struct lease_wait;

/* A connection of a client; the first is the creator's. */
struct client {
	struct warden *w;
	struct conn conn;
	bool creator;
	bool greeted;
	unsigned version; /* of the protocol */
	int pid;	  /* of its process, as it was when it connected */
	uint32_t uid;
	bool wants_destroyed; /* is told when all is gone, on that channel */
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
	uint64_t timeout_ms; /* of every call that has none of its own; 0: none */
};

/* Of calls (record.h), oldest first. */
struct records {
	struct record *first, *last;
	int n;
};

/* A child that seals the last generation, and removes what is not needed of it. */
struct sweeper {
	struct warden *w;
	pid_t pid; /* 0: none */
	int pidfd;
	struct loop_io io;
};

/* A layer in our own view. It never changes. */
struct sealed {
	char id[LAYER_ID];
	int *fds; /* by mount, negative where it says nothing; owned. NULL: none here */
};

struct warden {
	struct loop loop;
	enum sandbox_state state;
	const struct driver *driver;
	struct cell_events events; /* what the driver tells us */
	struct cell *cell;	   /* NULL: there is none yet, or none any more */
	struct cell_spec spec;
	char *texts[256]; /* what spec points to */
	int ntexts;
	char *program; /* path of cay */
	struct defaults defaults;
	bool ephemeral, rootful;
	bool kept; /* it may outlive its creator */
	enum trace_level trace_level;
	enum profile profile;
	int lock_fd, dir_fd;
	int disk_fd;		  /* where upper, next and old lie: dir_fd, or in the pool */
	struct layer_roots roots; /* where layers are looked for */
	int layers_fd;		  /* where its own are made */
	int uppers[CELL_MOUNTS], lowers[CELL_MOUNTS]; /* by mount; FD_NONE where not an overlay */
	char layers[CELL_LAYERS][LAYER_ID];	      /* of spec, which points there */
	struct sealed sealed[CELL_LAYERS];	      /* those, open */
	int *layer_fds[CELL_MOUNTS]; /* of what lies between the two, topmost first; borrowed */
	int nlayer_fds[CELL_MOUNTS];
	struct stat fresh[CELL_MOUNTS]; /* the uppers as they were made */
	unsigned made_in[CELL_MOUNTS];	/* generation, by which their work directories are called */
	struct turn *turn;		/* to the next generation; NULL: none under way */
	struct turn *unsealed;		/* done and answered, and about to be sealed */
	struct sweeper sweepers[16];	/* at work on what is left of the last ones */
	bool switched;			/* once at least: it may be again */
	struct loop_timer ahead_timer;

	struct conn init;
	bool init_greeted;
	struct trace trace;
	uint64_t created_event;
	struct watch *watch;
	struct loop_timer hello_timer; /* while init has not said hello */
	bool guarded;		       /* a first command was looked at, where nothing is watched */
	struct err refusal; /* why the sandbox was ended by us; kind ERR_NONE: it was not */
	struct changes *changes;
	struct changes_base bases[CELL_MOUNTS];
	struct loop_timer walk_timer;
	uint64_t started_ns;

	int listen_fd;
	struct loop_io listen_io;
	struct loop_timer listen_timer; /* while descriptors are short */
	struct client *clients;
	int nclients;
	struct call *calls; /* running and lingering */
	int ncalls;
	uint32_t last_call, running;
	struct records records[2]; /* of plain calls, of detached ones */
	struct client *lease;	   /* lease.h: the client that has it, or NULL */
	struct lease_wait *lease_waits;
	bool alone;	 /* it ends, and only init is left */
	int spare_group; /* of the first call, made while the sandbox is; or FD_NONE */
	uint32_t last_group;
	struct spare *spare; /* call_spare.c: the child for the next call; NULL: none */
	uint32_t last_spare;
	struct changes_call *windows; /* calls that may have changed files since the last walk */
	int nwindows;
	struct loop_timer disk_timer;
	bool disk_full; /* more was written than --disk allows, when last looked */
	struct loop_io signal_io;
	/* warm.h */
	char *warm;  /* directory that lists it while it has no owner; NULL: it was built for one */
	int warm_fd; /* of it */
	struct loop_timer warm_timer;
	struct net *net;    /* NULL: no network */
	struct dial *dials; /* ports inside that clients wait for */
	uint32_t ndials, last_dial;
	struct stream *streams; /* stream.h */
	/* pause.h */
	uint64_t ttl_ms, idle_ms; /* 0: none */
	bool pauses;		  /* instead of ending when a time is over */
	bool ttl_over;
	bool expired; /* it ends because a time is over */
	struct loop_timer ttl_timer, idle_timer;
	uint64_t ttl_left_ns, idle_left_ns; /* while paused */
	uint64_t expires_at_ms;		    /* real time; 0: never, or it is paused */
	uint64_t paused_ns;
	const char *end_reason;
	enum end_cause end_cause;
	struct client *asking; /* whose request is handled now; NULL: nobody's */
	struct who ended_by;   /* who asked for the end, or nobody */
	char failure[256];     /* of warden_fail(), which end_reason points to */
	bool removed;	       /* its files too: nothing is left to be settled */
	/* execve(2), for what becomes of us in the end; tests take another. */
	int (*exec)(const char *path, char *const argv[], char *const envp[]);
	struct loop_timer end_timer;
	struct call *final; /* with which the sandbox ends; its client has yet to be told */
	bool final_failed;
	struct err final_error;
	enum run_stage final_stage;
};

/* warden.c */
/* NULL: no memory. */
struct warden *warden_new(const struct driver *driver);
/* Its loop. 0 or -errno. */
int warden_open(struct warden *w);
/* Of a sandbox that was never built, or that has ended. */
void warden_free(struct warden *w);
/* Something that the sandbox cannot go on without has failed: end it. */
void warden_fail(struct warden *w, const char *what, int err);
/* End the event that was begun and write it; failing to is such a thing. 0 or -errno. */
int warden_trace_end(struct warden *w);
/* Add the client whose request is handled now to the event that is being built. */
void warden_trace_asker(struct warden *w);

/*
 * guard.c: the sandbox is looked at from outside before anything runs in it. Whoever made it to run
 * a command does not wait for that: the command is made ready meanwhile, and waits for the last
 * look before its exec.
 */
void guard_look_ahead(void); /* at what the first command is compared with */
/* Verify all that can be seen at this stage. */
int guard_look(struct warden *w, enum verify_stage stage, struct err *e);
/* Before the first order to init: what cannot be seen of it afterwards. False: the sandbox ends. */
bool guard_first_order(struct warden *w);
/* All of it; waits until init has said hello, and needs an init that has nothing to do. */
int guard_whole(struct warden *w, struct err *e);
bool guard_is_whole(const struct warden *w);
/* The same as guard_look(), later: what is not what it must be ends the sandbox. */
void guard_look_later(struct warden *w, enum verify_stage stage);
void guard_await_hello(struct warden *w);
/* Init is gone, or has made itself useless, before it could be looked at. */
void guard_lost_init(struct warden *w, const char *why);
/* For watch_guard(), or the call's gate. False: the sandbox ends. */
bool guard_first_exec(void *ctx, int pid);
/* The sandbox is not what it must be: write that into the trace, tell those who wait, end it. */
void guard_refuse(struct warden *w, const struct err *e);

/* build.c: MSG_C_BUILD */
int warden_build(struct warden *w, struct str body, struct err *e);
/* Its first step: spec and defaults from the request. Makes and opens nothing. */
int build_parse(struct warden *w, struct str body, struct err *e);
/* One field of those that an owner may choose when all else is built. */
int build_take_late(struct warden *w, struct field f, struct err *e);
/* Begin the trace with what was asked for. */
int build_trace(struct warden *w, struct str body, struct err *e);
/* Its last step: it runs, and its clocks do. Where that cannot be traced it ends. */
int build_begin(struct warden *w, struct err *e);
void warden_free_spec(struct warden *w);

/* layers.c: our own view of the layers, for finding changes */
int layers_open(struct warden *w, struct err *e);
/* Again, for other layers; moved: the upper is another too. */
int layers_move(struct warden *w, const bool *moved, struct err *e);
/* Whether anything was changed in a mount since its upper was made. */
bool layers_touched(const struct warden *w, int i);
/*
 * For watch_renames(). If all layers lie on one file system, overlayfs shows a directory that only
 * the upper has with its own inode number there, and all others with another one.
 */
bool layers_is_pure(void *ctx, const char *path, uint64_t ino);
/* What mount i starts from was frozen: the host cannot change it. */
bool layers_frozen(const struct warden *w, int i);
void layers_close(struct warden *w);
/* Take the list of layers from TAG_LAYER fields. */
int layers_take(struct warden *w, int n, struct str id, struct err *e);

/* generation.c: MSG_C_SWITCH */
int generation_switch(struct client *c, uint32_t chan, struct str body, struct err *e);
void generation_entered(struct warden *w, int err);
/* The client does not wait any more, or everything ends. */
void generation_forget(struct warden *w, const struct client *c);
void generation_end(struct warden *w);
/* generation_ahead.c: prepare the next switch, where one is likely, when nothing else is to be
 * done.
 */
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
void init_link_events(struct warden *w); /* what the driver is given to reach it */
int init_link_open(struct warden *w, struct err *e);
/* For watch_renames(). */
int init_link_prepare(void *ctx, const struct watch_rename *r);

/* walk.c: file changes */
int walk_open(struct warden *w, struct err *e);
/* The uppers will be others: what is still to be found in these is found now. */
void walk_retire(struct warden *w);
void walk_soon(struct warden *w, bool lingers);
void walk_now(struct warden *w);
void walk_window_open(struct warden *w, uint32_t call);
void walk_window_close(struct warden *w, uint32_t call);

/* ps.c */
int ps_send(struct client *c, uint32_t chan);
uint64_t ps_rss_kb(const struct warden *w);
/* Pids outside of all that is in the sandbox, init first: how many. */
int ps_pids(const struct warden *w, long *pids, int most);
/* b: for reading into. 0: it is gone. */
long ps_inside_pid(long pid, struct buf *b);

/* end.c: take the sandbox down, on the next turn of the loop, which then stops. */
void warden_end(struct warden *w, enum end_cause cause, const char *reason);
/* What remains once the loop has stopped: settle what is left, or nothing. */
void warden_settle(struct warden *w);
/* The same, and leave. */
void warden_leave(struct warden *w) __attribute__((noreturn));
