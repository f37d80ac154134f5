/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of processes that were seen to exec, and what the watch is made of.
 *
 * An exit: the pidfd becomes readable. The status comes from the kernel (Linux 6.15, or from
 * the zombie while it lasts), else from init. Where neither has it yet the process is parked
 * for a moment, because init's word may be on its way.
 *
 * Most processes are short, and to be woken for each of their ends costs as much as all the rest.
 * Where the kernel remembers the status of a reaped process, a new one is therefore *young*: its
 * pidfd is only looked at, every few milliseconds together with all others, and awaited once it
 * has lived longer than that. Whether it does is asked of the first process that ended, when the
 * next one is seen: those whose end we are woken for have not been reaped yet.
 */
#pragma once

#include "sys/filter/listener.h"
#include "warden/watch/watch.h"
#include "warden/watch/watch_proc.h"
#include "warden/watch/watch_table.h"

struct watch {
	struct loop *loop;
	struct trace *trace;
	int root_fd;
	char *prefix; /* the root's own name as seen from here; empty for "/" */
	struct proc_view view;
	struct proc_table table;
	struct proc *parked, **parked_end; /* longest first */
	struct loop_timer parked_timer;
	bool remembers; /* the kernel, how those ended that were reaped */
	bool forgets;	/* it does not */
	int probe_fd;	/* the first that ended: what is known of it when it has been reaped */
	struct proc *young;
	struct loop_timer young_timer;
	struct listener_bufs bufs;
	struct pending *pending; /* execs in progress */
	unsigned npending;
	int child_fd; /* readable when a held task has stopped or died */
	struct loop_io child_io;
	/* watch_rename.c */
	struct rename_order *renames; /* that wait; while busy, the first is with init */
	unsigned nrenames;
	bool rename_busy;  /* init has an order */
	bool rename_stuck; /* and did not answer in time */
	struct loop_timer rename_timer;
	int (*prepare)(void *ctx, const struct watch_rename *r);
	void *prepare_ctx;
	bool (*guard)(void *ctx, int tid); /* NULL: asked already, or there is none */
	void *guard_ctx;
};

struct watch_call {
	struct watch *watch;
	uint32_t call;
	uint64_t parent;
	int listener;
	struct loop_io io;
	struct proc *procs;
	uint64_t lost_execs, lost_exits; /* not yet written as trace.gap */
	bool told;
	void (*idle)(void *ctx);
	void *ctx;
};

/* A new process of the table: its end will be written. */
int proc_await(struct watch *w, struct proc *p);
/* It has ended; how is yet to be found out. May free the call. */
void proc_gone(struct proc *p);
/* status: NULL where it is not known. May free the call. */
void proc_ended(struct proc *p, const int *status);
void proc_drop(struct watch *w, struct proc *p);

/*
 * Write the ends of young processes, of one call or with NULL of all, and await those that
 * were young before then. May free calls that have none left.
 */
void watch_collect(struct watch *w, const struct watch_call *only, uint64_t before_ns);
/* Write what was lost. */
void watch_gaps(struct watch_call *c);
/* Tell where nothing of the call is left. May free it. */
void watch_settle(struct watch_call *c);
