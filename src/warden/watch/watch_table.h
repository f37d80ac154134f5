/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that have exec'ed and not yet exited, found by their pid outside or inside. Takes no
 * memory while empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

struct watch_call;

struct proc {
	struct proc *next_outside, *next_inside; /* chains of the table */
	struct watch_call *call;
	struct proc *call_next, **call_at; /* list of the call's processes */
	struct loop_io io;
	int pidfd;
	int pid, inside;
	uint64_t exec_event; /* number of the latest exec event, or 0 */
	bool has_status;     /* init has reported the status */
	int status;	     /* wait(2) */
	uint64_t parked_ns;  /* when it ended, if its status is awaited; 0: alive */
	struct proc *parked_next, **parked_at;
	uint64_t young_ns; /* when it started, if its end is polled, not awaited; 0: not young */
	struct proc *young_next, **young_at;
};

struct proc_table {
	struct proc **outside, **inside;
	uint32_t size; /* slots of both tables; 0 or a power of two */
	uint32_t count, max;
};

/* Takes p, which has both pids set. -ENOSPC at max, or -ENOMEM. */
int proc_table_add(struct proc_table *t, struct proc *p);
/* Returns p to the caller. */
void proc_table_del(struct proc_table *t, struct proc *p);
/* Skips parked processes: their pid outside may belong to another process by now. */
struct proc *proc_table_find(const struct proc_table *t, int pid);
/* The oldest process with that pid whose status is still unknown. */
struct proc *proc_table_find_inside(const struct proc_table *t, int inside);
