/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block on a loop, with a deadline and a way to cancel. Every sleep of operations and links goes
 * through a waiter, so one deadline and one descriptor end any wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

struct waiter {
	struct loop *loop;    /* borrowed */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	int cancel_fd;	      /* becomes readable to cancel; borrowed; FD_NONE: none */
};

/*
 * Run the loop until *done. Returns 0, -ETIMEDOUT, -ECANCELED (also if loop_stop() was called), or
 * -errno. -EBUSY inside a callback of this loop, because other callbacks could free what the caller
 * holds. Checks *done first: it wins over an expired deadline.
 */
int wait_until(struct waiter *w, const bool *done);
/* Wait pause_ns. 0 when that time has passed; otherwise fails like wait_until(). */
int wait_pause(struct waiter *w, uint64_t pause_ns);
/* flock(2) for writing. Never blocks in the kernel: retries after 1, 2, 4 … 20 ms. */
int wait_lock(struct waiter *w, int fd);
