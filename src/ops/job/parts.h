/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a queue: lanes of jobs (queue.c, lane.c), and workers (queue_workers.c). */
#pragma once

#include "ops/job/queue.h"

struct job {
	struct job_queue *queue;
	const struct job_kind *kind;
	struct job_lane *lane;
	struct job_worker *worker; /* NULL: it waits */
	struct job *next, *prev;   /* in its lane, while it waits */
	uint32_t number;
	uint64_t deadline_ns;
	struct loop_timer deadline; /* while it waits */
	struct buf in;
	bool again; /* it has run before, in a worker that died */
	void (*done)(void *ctx, const struct job_answer *a,
		     const struct err *why); /* NULL: dropped */
	void (*progress)(void *ctx, const struct job_progress *p);
	void *ctx;
};

/* lane.c. The lane of this key, made where there is none; NULL: no memory. */
struct job_lane *lane_of(struct job_queue *q, enum job_class class_, const char *key);
/* The job waits, behind the others or before them. */
void lane_put(struct job_queue *q, struct job *j, bool first);
/* It waits no more. */
void lane_take(struct job_queue *q, struct job *j);
/* It runs, and runs no more. The latter may free the lane. */
void lane_enter(struct job *j);
void lane_leave(struct job_queue *q, struct job *j);
/* The next job of this class that can begin, taken from its lane; NULL: none. */
struct job *lane_next(struct job_queue *q, enum job_class class_);
/* Nobody waits or runs in it. */
void lane_free_if_empty(struct job_queue *q, struct job_lane *l);
void lanes_free(struct job_queue *q);

static inline enum job_class job_class_of(const struct job_kind *k)
{
	return k->flags & JOB_LONG ? JOB_CLASS_LONG : JOB_CLASS_QUICK;
}

/* queue.c: it has run. Tells its owner, and frees it. */
void job_finish(struct job *j, const struct job_answer *a, const struct err *why);
/* Its worker died. */
void job_orphaned(struct job *j);
/* Give jobs to workers, as far as there are both. */
void jobs_hand_out(struct job_queue *q);

/* queue_workers.c: an idle one of this class, or NULL; then more may be asked for. */
struct job_worker *worker_idle(struct job_queue *q, enum job_class class_);
/* Send the job to it. -errno: the worker is useless and ends. */
int worker_give(struct job_worker *w, struct job *j);
void worker_cancel(struct job_worker *w);
