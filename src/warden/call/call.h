/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one command with everything that comes of it.
 *
 *   requested -> running -> exited, output drained -> answered -> idle: all processes gone
 *
 * The warden answers the client when the command itself has ended and its output has been passed
 * on. Processes that the command left behind still belong to the call. The warden reads and drops
 * their output, so that they never block on the warden or die of SIGPIPE.
 */
#pragma once

#include "warden/warden.h"

struct ask;

enum { GROUP_NAME = 24 };

/* One of stdout, stderr, or the master of a terminal. */
struct outlet {
	struct call *call;
	struct loop_io io;
	int fd;	      /* FD_NONE after the end */
	uint8_t type; /* MSG_C_STDOUT or MSG_C_STDERR */
	bool paused, drained;
	size_t chunk; /* bytes to read at once, adapted to earlier reads */
	uint64_t bytes;
};

struct call {
	struct warden *w;
	struct client *client; /* NULL: it has disconnected */
	uint32_t chan;	       /* channel of the client */
	bool limited;	       /* the client grants credit for output */
	uint64_t credit;
	struct record *record; /* record.h; NULL after the end */
	uint32_t id;
	uint32_t job;	/* number of the call in the protocol with init */
	uint64_t event; /* number of the call.start event */
	enum call_op op;
	bool tty;
	bool has_master;       /* the warden holds the terminal's master; false: init holds it */
	struct stream *stream; /* stream.h; NULL: init has the descriptors */

	struct outlet out, err;
	int in_fd; /* our end of stdin, or the terminal's master (not owned there) */
	struct loop_io in_io;
	struct buf in; /* stdin that the command has not read yet */
	bool in_eof;

	/* receives the exec listener; or the gate at which the first command waits */
	int report_fd, gate_fd;
	struct loop_io report_io, gate_io;
	struct watch_call *watch;

	struct loop_timer timeout;
	uint64_t timeout_left_ns; /* time left of the timeout, while the sandbox is paused */
	uint64_t started_ns;
	bool started, exited, answered, watch_idle;
	bool final;		 /* the sandbox ends with this call */
	const char *kill_reason; /* why the warden ended the call; NULL: it ended by itself */
	int status;
	uint64_t cpu_us, maxrss_kb, duration_us;
	char group[GROUP_NAME]; /* name of the call's control group */
	uint64_t group_id;	/* inode of the group; 0: none */
	struct spare *spare; /* the spare child that was made for it; NULL: none, or it is ready */
	/* limits.c */
	uint64_t memory;	    /* the call's own limit in bytes; 0: none */
	struct group_counts counts; /* counters at the start of the call */
	bool counted;		    /* the counters must be read again at the end */
	bool disk_full;		    /* the call started above the disk limit */
	uint64_t oom_kills, oom_limit;
	bool oom_own; /* the call reached its own limit, not the sandbox's */
	char warning[CELL_WHY + 48];
	struct net_denial *denied; /* net_trace.c: connections that the policy denied */
	uint64_t denied_more;	   /* number of denials beyond the list */
	struct call *next;
};

/* Handle MSG_C_EXEC. On failure everything is undone, and e has the reason. */
int call_start(struct client *c, uint32_t chan, struct str body, struct err *e);

/* Events from the client. */
void call_stdin(struct call *c, struct str data);
void call_stdin_eof(struct call *c);
void call_signal(struct call *c, int sig);
void call_resize(struct call *c, unsigned rows, unsigned cols);
/* The client has consumed this many bytes of output. */
void call_credit(struct call *c, uint64_t bytes);
/* The client's connection has room again, or the client is gone. */
void call_resume(struct call *c);
void call_orphan(struct call *c);
struct call *call_of_client(struct client *c, uint32_t chan);

/* Events from init. */
void call_started(struct call *c, int pid);
void call_failed(struct call *c, enum run_stage stage, int err, struct str text);
void call_exited(struct call *c, int status, uint64_t cpu_us, uint64_t maxrss_kb);
struct call *call_by_id(struct warden *w, uint32_t id);
/* Find a call by init's number; this includes the call of an unused spare child. */
struct call *call_by_job(struct warden *w, uint32_t job);

/* End every process of the call. reason: timeout, killed, client_gone, disk… */
void call_kill(struct call *c, const char *reason);
/* Every process is gone: answer and free the call, unless it is final (call_say_final). */
void call_end(struct call *c, const char *reason);
/* Answer the client of the final call, and free the call. */
void call_say_final(struct call *c);
void call_free(struct call *c);
struct call *call_new(struct warden *w);
/* Make the control group of the first call in advance, while no client waits. If that fails, the
 * first call reports the error. */
void call_spare_group(struct warden *w);
int call_open_group(struct call *c, int fds[FD_ROLES]);
/* Its exec listener has arrived. */
void call_watch(struct call *c, int listener_fd);
/* Write call.start, and do everything else that must precede the command. */
int call_begin(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e);

/* call_result.c */
void call_trace_exit(struct call *c);
void call_say_exit(struct call *c);
/* The command never ran, or its end cannot be reported. */
void call_say_error(struct call *c, const struct err *why, enum run_stage at);

/*
 * call_spare.c: a child of init that waits for the next call. NONE means that there is no struct
 * spare.
 *
 *   NONE > ASKED > READY > TAKEN > NONE    a call uses the child
 *          ASKED > TAKEN                   the order waits for the child
 *   ASKED, READY > DROPPED > NONE          the warden ended it, and init has reported its end
 *   ASKED, READY > NONE                    it ended by itself
 */
enum spare_state { SPARE_NONE, SPARE_ASKED, SPARE_READY, SPARE_TAKEN, SPARE_DROPPED, SPARE_STATES };
bool spare_may_move(enum spare_state from, enum spare_state to);

struct spare {
	struct warden *w;
	enum spare_state state;
	struct call *call; /* its pipes, group and number; joins the sandbox's calls when taken */
	int fd;		   /* the child reports ready here and receives its order */
	struct loop_io io;
	pid_t outside; /* pid of the child outside, from the kernel; 0: not known yet */
	int inside;
};

void spare_make(struct warden *w);
/* The call of the spare child, if request a can use it. order: the order to send to the child. */
struct call *spare_take(struct warden *w, const struct ask *a, struct buf *order);
int spare_launch(struct call *c, const struct ask *a, const struct buf *order, struct err *e);
/* End the spare child; it is freed when init reports its end. */
void spare_drop(struct warden *w);
/* If c is the call of an unused spare child, free both. True: c is freed. */
bool spare_ended(struct call *c);
/* Does not free the call, which may be in use by then. */
void spare_free(struct spare *s);
/* True if this process (pid outside) is the spare child. Never blocks. */
bool spare_is(struct warden *w, long pid);
/* True while a spare child is starting and its pid is unknown, or while one is ending. */
bool spare_is_moving(const struct warden *w);

/* call_io.c */
int call_io_open(struct call *c, unsigned rows, unsigned cols, int fds[FD_ROLES], struct err *e);
void call_io_close(struct call *c);
/* True if neither outlet has more output that must reach the client. */
bool call_io_drained(struct call *c);
void call_check_done(struct call *c);

/* call_ask.c: the client's request */
struct ask {
	struct str body;
	enum call_op op;
	bool tty, final;
	uint64_t rows, cols, timeout_ms, mode, call_memory;
	bool best_effort;
	bool has_window, detached, idempotent, has_length;
	uint64_t window, retain, offset, length;
	struct str cwd, user, call_id, path;
	int argc, nlabels;
};
int ask_parse(struct ask *a, struct str body, struct err *e);
/* Send init MSG_RUN for the request or, if a is NULL, MSG_STAND_BY. Takes fds. */
int ask_send(const struct ask *a, struct call *c, int fds[FD_ROLES]);
/* Prefetch the program and the files that it needs, while init prepares the child. */
void ask_prefetch(const struct ask *a, const struct warden *w);
/* Write MSG_RUN for a spare child, which has its descriptors already. */
int ask_order(const struct ask *a, const struct call *c, struct buf *out);
/* Write call.start for the request. */
void ask_trace(const struct ask *a, struct call *c);
