/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that clients start in a sandbox. A process is a detached call of the warden; the front
 * follows it for its whole life, because several clients may listen, and none has to.
 *
 *   process ── output ──> every listener. Without one, output is dropped. A listener that is slow
 *   stops the process, as a full pipe would.
 *
 * If the front is replaced, the next one finds the calls at the warden by their caller's id.
 */
#pragma once

#include "api/e2b/envd.h"
#include "link/decode.h"

/* A stream that listens to a process: Start and Connect. */
struct listener {
	struct envd *v;
	struct proc *proc; /* NULL: none any more */
	struct listener *next;
	struct loop_timer deadline, ping;
	uint64_t ping_ns;
	bool full;  /* it takes no more just now */
	bool kills; /* its deadline ends the process */
};

/* A request whose body is input for a process. */
struct feeder {
	struct proc *proc; /* NULL: none yet, or it has ended */
	struct feeder *next;
	bool at_its_end; /* nothing more comes: all of it is taken */
	/* The process has read enough to go on, or has ended. */
	void (*room)(struct feeder *f);
};

struct proc {
	struct box *box;
	struct proc *next;
	struct link_call call;
	struct listener *listeners;
	struct feeder *feeders;
	int pid; /* inside; 0: it has not started */
	char tag[128];
	char *config; /* JSON: cmd, args, envs, cwd */
	size_t config_n;
	size_t counted; /* of box->held */
	bool tty, stdin_open, ended;
	struct buf early[2]; /* output that came before its start was known */
	size_t held[2];	     /* output that was taken, and of which the warden is not told yet */
	struct buf input;    /* that the process has not taken */
	bool eof;	     /* behind it */
	struct buf end;	     /* the last event, for late listeners */
	struct loop_timer keep;
	struct loop_timer limit; /* its end, also where the client that set it has left */
};

enum { PROC_INPUT_MOST = 4 << 20 };

/* Start it, with one listener. -errno: nothing was started; -E2BIG: too much waits. */
int proc_start(struct box *b, const struct call_spec *spec, struct proc *p, struct listener *l);
/* Follow a detached call that is there, from the end of its output. -errno: it is not followed. */
int proc_join(struct proc *p, const struct link_call_row *row);
/* The caller's id of a process's call. A tag that is too long is left out. */
void proc_call_id(const char *tag, char out[LIMIT_NAME + 1]);
/* Find the running processes of a box whose link was just opened. */
void procs_restore(struct box *b);
struct proc *proc_new(struct box *b);
void proc_free(struct proc *p);
/* It hears what comes from now on; of one that has ended, the end. */
void proc_listen(struct proc *p, struct listener *l);
void listener_done(struct listener *l);
/* A listener that was full is not any more. */
void proc_room(struct proc *p);
struct proc *proc_find(struct box *b, int pid, const char *tag);
/* 0, or -E2BIG where too much waits. */
int proc_write(struct proc *p, struct str data);
void proc_eof(struct proc *p);
void feeder_add(struct proc *p, struct feeder *f);
/* Legal on one without a process. */
void feeder_remove(struct feeder *f);
/* Its process should read first. */
bool feeder_is_full(const struct feeder *f);
/* All of them: their listeners hear that the sandbox is gone. */
void procs_free(struct box *b);

/* e2b/process.c: the process that a selector names, or NULL and the request is refused. ended: also
 * one that has just ended. */
struct proc *process_named(struct envd *v, struct box *b, const json_t *selector, bool ended);
/* {"stdin": …} or {"pty": …} to the process. False: the request is refused. */
bool process_give(struct envd *v, struct proc *p, const json_t *input);
