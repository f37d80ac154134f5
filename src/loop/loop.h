/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop per process. Sources are embedded in the objects that own them
 * (container_of leads back), so the loop allocates nothing per source.
 *
 * A source may be removed, and its object freed, from within any callback: events of
 * the current batch that still name it are dropped.
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
	bool first; /* set after it was added: its events are handled before others of a turn */
};

struct loop_timer {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0 while stopped */
	struct loop_timer *next;
	void (*fn)(struct loop_timer *timer);
};

struct loop {
	int epfd;
	bool stop;
	struct loop_timer *timers; /* by time, soonest first */
	struct epoll_event *batch;
	int batch_len;
	/* Runs at the end of each turn, before the loop sleeps again; or NULL. */
	void (*turned)(struct loop *l);
	/*
	 * Runs when nothing is ready, or soon at the latest: for what nobody waits for. Only
	 * while `chores` is set, which it clears by itself; or NULL.
	 */
	void (*idle)(struct loop *l);
	bool chores;
	int busy_turns; /* since there are some */
};

int loop_init(struct loop *l);
void loop_done(struct loop *l);
DEFINE_AUTO(struct loop, loop_done)

int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	     void (*fn)(struct loop_io *, uint32_t));
/* Change the events waited for; cheap where they are the same. */
int loop_mod(struct loop *l, struct loop_io *io, uint32_t events);
/* Legal on a source that was never added. Call before closing the descriptor. */
void loop_del(struct loop *l, struct loop_io *io);

/* Run fn once after delay_ns; setting a running timer moves it. */
void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns,
		    void (*fn)(struct loop_timer *));
void loop_timer_stop(struct loop *l, struct loop_timer *t);

/* Until loop_stop(). 0 or -errno. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);
