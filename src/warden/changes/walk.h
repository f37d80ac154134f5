/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to look for changed files, in which order, and for whom.
 *
 * A *walk* is the files of one generation with the calls that may have changed them. The warden has
 * one for the generation in use. A snapshot or rollback does not wait for a long walk: the warden
 * keeps the last generation's files open as an *old* walk and continues. Their events then follow
 * the event of the switch, and say so with "before". Nobody writes to them any more; the files of a
 * rollback are removed after their walk.
 *
 *   short walk    in the loop, at once
 *   long walk     in a child (changes_job.h). One at a time, old ones first. When the child has
 *                 exited, the loop writes the events in small groups, with pauses unless a
 *                 client waits for them.
 *   child died    the walk starts again. After WALK_DEATHS deaths it is done in the loop.
 *   queue full    a switch then completes all walks first.
 *   end           all walks are completed before sandbox.end.
 *
 * A client that reads the trace waits (C_SETTLE) until a walk that began after its request is done.
 */
#pragma once

#include "loop/loop.h"
#include "warden/changes/changes.h"

struct warden;
struct client;
struct changes_job;
struct settle;

enum { WALK_OLD = 8, WALK_DEATHS = 3 };

struct walk {
	struct changes *changes; /* NULL: files are not traced */
	struct changes_call *calls;
	int ncalls;
	/* of an old walk: */
	bool again;	     /* its last walk began before the switch */
	uint64_t before;     /* event of the switch */
	unsigned generation; /* its number */
	char *heap;	     /* directory in disk_fd to remove afterwards; or NULL */
	struct walk *next;   /* a later one */
};

struct walks {
	struct walk now;  /* of the generation in use */
	struct walk *old; /* oldest first */
	int nold;
	struct changes_job *job; /* the walk in progress; NULL: none */
	struct walk *of;	 /* whose job it is */
	struct loop_io io;	 /* waits for the job's child */
	bool emitting;		 /* the child has exited; events are being written */
	int deaths;		 /* children that died, one after the other */
	int spoiled;		 /* walks in a row that met a directory being moved */
	uint64_t orders;	 /* watch_rename_orders() when the job began */
	struct loop_timer timer, emit_timer;
	struct loop_timer sample_timer; /* walk_cpu.h */
	uint64_t sample_ms, sampled_orders, closed_ns;
	bool waited;		/* wait_until_ns is of the next walk */
	uint64_t wait_until_ns; /* for a sample (walk_cpu.h) */
	bool wanted;		/* walk `now` as soon as possible */
	bool again;		/* a call ended while `now` was being walked */
	uint64_t begun, done;	/* numbers of the last walk of `now` that began, and that is done */
	struct settle *settles;
	int nsettles;
};

int walk_open(struct warden *w, struct err *e);
void walk_close(struct warden *w);
/* The uppers are about to be replaced. */
void walk_retire(struct warden *w, unsigned generation);
/* The event of that switch is the last one in the trace. */
void walk_switched(struct warden *w);
/* Remove the directory when the old walk of that generation is done. False: it is done already. */
bool walk_remove_later(struct warden *w, unsigned generation, const char *heap);
void walk_soon(struct warden *w, bool lingers);
/* Complete all walks, however long they take. */
void walk_finish(struct warden *w);
void walk_window_open(struct warden *w, uint32_t call, uint64_t event);
void walk_window_close(struct warden *w, uint32_t call);

/* MSG_C_SETTLE: answer when the trace has every event so far. */
int walk_settle(struct client *c, uint32_t chan, struct err *e);
void walk_forget(struct warden *w, const struct client *c);
/* Walk the files of the generation in use as soon as possible. */
void walk_want(struct warden *w);
/* For the warden's loop: work that nothing waits for. */
void walk_idle(struct warden *w);
