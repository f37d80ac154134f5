/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process: runs one job after another with one struct cay, until the queue closes its
 * socket. It finishes the current job first.
 *
 * Wardens that a job starts are children of the worker. It reaps them between jobs, because
 * operations wait for children of their own.
 */
#pragma once

#include "ops/job/job.h"

/*
 * Takes both descriptors. ctx is passed to the handlers. Returns 0 when the queue has closed the
 * socket, or -1. Blocks SIGCHLD.
 */
int job_worker_run(struct cay *c, const struct job_table *table, const void *ctx, int sock,
		   int cancel_fd, struct err *e);
