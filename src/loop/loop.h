/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop per process. Each source is embedded in the object that owns it (container_of
 * leads back to the object), so the loop allocates nothing per source.
 *
 * A callback may remove any source and free its object. The loop then drops that source's remaining
 * events of the current batch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

struct loop_io {
	int fd; /* borrowed; FD_NONE while not in the loop */
	uint32_t events;
	void (*fn)(struct loop_io *io, uint32_t events);
	bool first; /* set after adding: handle its events before others of a turn */
};

struct loop_timer {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0 while stopped */
	uint64_t order; /* timers with equal time run in the order of setting */
	/* Links of the heap: first child, next sibling, and the previous sibling or parent. */
	struct loop_timer *child, *next, *prev;
	void (*fn)(struct loop_timer *timer);
};

struct loop {
	int epfd;
	bool stop;
	bool running;		   /* a callback runs, or the loop sleeps */
	struct loop_timer *timers; /* a pairing heap (loop/timers.c); the root is due first */
	uint64_t timers_set;	   /* number of timers set so far: the `order` of the last one */
	struct epoll_event *batch;
	int batch_len;
	/* Runs at the end of each turn, before the loop sleeps again; or NULL. */
	void (*turned)(struct loop *l);
	/*
	 * Does work that nothing waits for. Runs when no source is ready, or after a few turns at
	 * the latest. Runs only while `chores` is set, and clears `chores` itself; or NULL.
	 */
	void (*idle)(struct loop *l);
	bool chores;
	int busy_turns; /* turns since `chores` was set */
};

int loop_init(struct loop *l);
void loop_done(struct loop *l);
DEFINE_AUTO(struct loop, loop_done)

int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	     void (*fn)(struct loop_io *, uint32_t));
/* Change the events to wait for; cheap if they are the same. */
int loop_mod(struct loop *l, struct loop_io *io, uint32_t events);
/* Allowed on a source that was never added. Call before closing the descriptor. */
void loop_del(struct loop *l, struct loop_io *io);

/* Run fn once after delay_ns. Setting a running timer moves it. */
void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns,
		    void (*fn)(struct loop_timer *));
void loop_timer_stop(struct loop *l, struct loop_timer *t);

/* Run until loop_stop(). 0 or -errno; -EBUSY if this loop is already running. */
int loop_run(struct loop *l);
/* Run until *done is true at the end of a turn, or loop_stop(). */
int loop_run_until(struct loop *l, const bool *done);
void loop_stop(struct loop *l);
