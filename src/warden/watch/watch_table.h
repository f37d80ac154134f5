/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that were seen to exec and whose exit is still to come, found by their pid
 * outside or inside. Takes no memory while empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

struct watch_call;

struct proc {
	struct proc *next_outside, *next_inside; /* chains of the table */
	struct watch_call *call;
	struct proc *call_next, **call_at; /* among the processes of the call */
	struct loop_io io;
	int pidfd;
	int pid, inside;
	uint64_t exec_event; /* the latest, or 0 */
	bool has_status;     /* init has told it */
	int status;	     /* wait(2) */
	uint64_t parked_ns;  /* gone since then, status awaited; 0: lives */
	struct proc *parked_next, **parked_at;
	uint64_t young_ns; /* since then, its end is not awaited but looked for; 0: not so */
	struct proc *young_next, **young_at;
};

struct proc_table {
	struct proc **outside, **inside;
	uint32_t size; /* of both; 0 or a power of two */
	uint32_t count, max;
};

/* Takes p, which carries both pids. -ENOSPC at max, or -ENOMEM. */
int proc_table_add(struct proc_table *t, struct proc *p);
/* Gives p back to the caller. */
void proc_table_del(struct proc_table *t, struct proc *p);
/* Processes that are parked are not found by the pid outside, which may be another's by now. */
struct proc *proc_table_find(const struct proc_table *t, int pid);
/* The oldest of that pid whose status is not known yet. */
struct proc *proc_table_find_inside(const struct proc_table *t, int inside);
