/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of processes, and the internal structures of the watch.
 *
 * An exit makes the pidfd readable. The status comes from the kernel (Linux 6.15, or earlier from
 * the zombie while it exists), else from init. If neither has it yet, the process is parked for a
 * moment, because init's report may be in transit.
 *
 * Most processes are short, and a wake-up for each end costs as much as all other work. So if the
 * kernel remembers the status of a reaped process, a new process is *young*: the watch only polls
 * its pidfd, every few milliseconds together with all others. It awaits the pidfd once the process
 * has lived longer than that. The watch tests this kernel feature on the first process that ended,
 * when it sees the next process: a process whose end wakes the watch has not been reaped yet.
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
	char *prefix; /* name of the sandbox's root as seen from here; empty for "/" */
	struct proc_view view;
	struct proc_table table;
	struct proc *parked, **parked_end; /* longest parked first */
	struct loop_timer parked_timer;
	bool remembers; /* the kernel remembers the status of reaped processes */
	bool forgets;	/* the kernel does not remember it */
	int probe_fd;	/* pidfd of the first process that ended, to test this after its reap */
	struct proc *young;
	struct loop_timer young_timer;
	struct listener_bufs bufs;
	struct pending *pending; /* execs in progress */
	unsigned npending;
	int child_fd; /* readable when a held task has stopped or died */
	struct loop_io child_io;
	/* watch_rename.c */
	struct rename_order *renames; /* waiting; while busy, init handles the first */
	unsigned nrenames;
	bool rename_busy; /* init has an order */
	uint64_t rename_orders;
	bool rename_stuck; /* init did not answer in time */
	struct loop_timer rename_timer;
	struct watch_rename_ops rename_ops;
	bool (*guard)(void *ctx, int tid); /* NULL: already called, or none */
	void *guard_ctx;
	void (*refused)(void *ctx);
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

/* Add a process to the table; the watch will write its end. */
int proc_await(struct watch *w, struct proc *p);
/* The process has ended; find out its status. May free the call. */
void proc_gone(struct proc *p);
/* status: NULL if unknown. May free the call. */
void proc_ended(struct proc *p, const int *status);
void proc_drop(struct watch *w, struct proc *p);

/*
 * Write the ends of young processes, of one call or (NULL) of all. Await the processes that were
 * young before before_ns. May free calls that have no process left.
 */
void watch_collect(struct watch *w, const struct watch_call *only, uint64_t before_ns);
/* Write the counts of lost events. */
void watch_gaps(struct watch_call *c);
/* If nothing of the call is left, run `idle`. May free the call. */
void watch_settle(struct watch_call *c);
