/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one command with all that comes of it.
 *
 *   asked -> running -> exited, output drained -> answered -> idle: all processes gone
 *
 * The client gets its answer when the command itself has ended and what it wrote has been
 * passed on. Processes that it left behind keep belonging to the call; what they write is
 * read and dropped, so that they never block on us or die of SIGPIPE.
 */
#pragma once

#include "warden/warden.h"

struct ask;

enum { GROUP_NAME = 24 };

/* One of stdout, stderr, or the master of a terminal. */
struct outlet {
	struct call *call;
	struct loop_io io;
	int fd;	      /* FD_NONE when it has ended */
	uint8_t type; /* MSG_C_STDOUT or MSG_C_STDERR */
	bool paused, drained;
	size_t chunk; /* how much is read at once, by what came before */
	uint64_t bytes;
};

struct call {
	struct warden *w;
	struct client *client; /* NULL: gone */
	uint32_t chan;	       /* of the client */
	bool limited;	       /* output, by credit */
	uint64_t credit;
	struct record *record; /* record.h; NULL once it has ended */
	uint32_t id;
	uint32_t job;	/* its number at init */
	uint64_t event; /* call.start */
	enum call_op op;
	bool tty;
	bool has_master;       /* of its terminal; else the terminal is init's */
	struct stream *stream; /* stream.h; NULL: init has its descriptors */

	struct outlet out, err;
	int in_fd; /* our end of stdin, or the terminal's master (not owned there) */
	struct loop_io in_io;
	struct buf in; /* not yet taken by the command */
	bool in_eof;

	/* where the exec listener arrives, or the first command waits */
	int report_fd;
	struct loop_io report_io;
	struct watch_call *watch;

	struct loop_timer timeout;
	uint64_t timeout_left_ns; /* while the sandbox is paused */
	uint64_t started_ns;
	bool started, exited, answered, watch_idle;
	bool final;		 /* the sandbox ends with it */
	const char *kill_reason; /* why we ended it; NULL: it ended itself */
	int status;
	uint64_t cpu_us, maxrss_kb, duration_us;
	char group[GROUP_NAME]; /* name of its control group */
	uint64_t group_id;	/* inode of it; 0: none */
	struct spare *spare; /* the child that was made ahead for it; NULL: none, or it is ready */
	/* limits.c */
	uint64_t memory;	    /* its own limit; 0: none */
	struct group_counts counts; /* when it began */
	bool counted;		    /* the counters will be looked at again */
	bool disk_full;		    /* it began above the limit of the disk */
	uint64_t oom_kills, oom_limit;
	bool oom_own; /* the limit was the call's own */
	char warning[CELL_WHY + 48];
	struct net_denial *denied; /* net_trace.c: by the policy */
	uint64_t denied_more;	   /* that are not in the list */
	struct call *next;
};

/* MSG_C_EXEC. On failure nothing is left, and e says why. */
int call_start(struct client *c, uint32_t chan, struct str body, struct err *e);

/* From the client. */
void call_stdin(struct call *c, struct str data);
void call_stdin_eof(struct call *c);
void call_signal(struct call *c, int sig);
void call_resize(struct call *c, unsigned rows, unsigned cols);
/* The client has passed on so much output. */
void call_credit(struct call *c, uint64_t bytes);
/* The client has room again, or is gone. */
void call_resume(struct call *c);
void call_orphan(struct call *c);
struct call *call_of_client(struct client *c, uint32_t chan);

/* From init. */
void call_started(struct call *c, int pid);
void call_failed(struct call *c, enum run_stage stage, int err, struct str text);
void call_exited(struct call *c, int status, uint64_t cpu_us, uint64_t maxrss_kb);
struct call *call_by_id(struct warden *w, uint32_t id);
/* By init's number, also one that nobody has asked for yet. */
struct call *call_by_job(struct warden *w, uint32_t job);

/* End every process of the call. reason: timeout, killed, client_gone, disk… */
void call_kill(struct call *c, const char *reason);
/* Every process is gone: answer and free, but for the call that the sandbox ends with. */
void call_end(struct call *c, const char *reason);
/* Tell the client of that one, and free it. */
void call_say_final(struct call *c);
void call_free(struct call *c);
struct call *call_new(struct warden *w);
/* Make the control group of the first call ahead, while nobody waits for us. Where it cannot be
 * made that call will say so. */
void call_spare_group(struct warden *w);
int call_open_group(struct call *c, int fds[FD_ROLES]);
/* Its listener has come. */
void call_watch(struct call *c, int listener_fd);
/* Write call.start, and what else has to be known before the command runs. */
int call_begin(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e);

/* call_result.c */
void call_trace_exit(struct call *c);
void call_say_exit(struct call *c);
/* The command never ran, or its end cannot be reported. */
void call_say_error(struct call *c, const struct err *why, enum run_stage at);

/*
 * call_spare.c: a child of init that waits for the next call. NONE is no struct spare at all.
 *
 *   NONE > ASKED > READY > TAKEN > NONE    the call has it
 *          ASKED > TAKEN                   the order waits for the child
 *   ASKED, READY > DROPPED > NONE          told to end; init has said that it did
 *   ASKED, READY > NONE                    it ended by itself
 */
enum spare_state { SPARE_NONE, SPARE_ASKED, SPARE_READY, SPARE_TAKEN, SPARE_DROPPED, SPARE_STATES };
bool spare_may_move(enum spare_state from, enum spare_state to);

struct spare {
	struct warden *w;
	enum spare_state state;
	struct call *call; /* its pipes, group and number; one of the sandbox's calls once taken */
	int fd;		   /* where the child says that it is ready, and gets its order */
	struct loop_io io;
	pid_t outside; /* of the child, in the kernel's word; 0: not known yet */
	int inside;
};

void spare_make(struct warden *w);
/* The call of the spare child, where that can be this call; order: what the child is told. */
struct call *spare_take(struct warden *w, const struct ask *a, struct buf *order);
int spare_launch(struct call *c, const struct ask *a, const struct buf *order, struct err *e);
/* It is not needed any more; freed when its child has ended. */
void spare_drop(struct warden *w);
/* Frees it where c is only the call of a spare child that nobody has taken. True: c is gone. */
bool spare_ended(struct call *c);
/* Not its call, which may have it no more. */
void spare_free(struct spare *s);
/* Whether this process, by its pid outside, is the child that waits. Never blocks. */
bool spare_is(struct warden *w, long pid);
/* Whether a child is on its way of which the pid is not known yet, or one that is to end. */
bool spare_is_moving(const struct warden *w);

/* call_io.c */
int call_io_open(struct call *c, unsigned rows, unsigned cols, int fds[FD_ROLES], struct err *e);
void call_io_close(struct call *c);
/* True when both outlets have nothing more that must reach the client. */
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
/* Write MSG_RUN for init from it, or where a is NULL MSG_STAND_BY. Takes fds. */
int ask_send(const struct ask *a, struct call *c, int fds[FD_ROLES]);
/* Its program, and what that needs, while init makes it ready. */
void ask_foresee(const struct ask *a, const struct warden *w);
/* MSG_RUN for a child that has its descriptors. */
int ask_order(const struct ask *a, const struct call *c, struct buf *out);
/* Write call.start from it. */
void ask_trace(const struct ask *a, struct call *c);
