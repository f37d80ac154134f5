/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the queue: lanes of jobs (queue.c, lane.c), and workers (queue_workers.c). */
#pragma once

#include "ops/job/queue.h"

struct job {
	struct job_queue *queue;
	const struct job_kind *kind;
	struct job_lane *lane;
	struct job_worker *worker; /* NULL: waiting */
	struct job *next, *prev;   /* position in its lane while it waits */
	uint32_t number;
	uint64_t deadline_ns;
	struct loop_timer deadline; /* while it waits */
	struct buf in;
	bool again; /* it ran before, in a worker that died */
	void (*done)(void *ctx, const struct job_answer *a,
		     const struct err *why); /* NULL: its owner dropped it */
	void (*progress)(void *ctx, const struct job_progress *p);
	void *ctx;
};

/* lane.c. Returns the lane of this asker and key; creates it if needed. NULL: no memory. */
struct job_lane *lane_of(struct job_queue *q, enum job_class class_, const char *asker,
			 const char *key);
/* Add a waiting job at the end of its lane, or at the front. */
void lane_put(struct job_queue *q, struct job *j, bool first);
/* Remove a waiting job from its lane. */
void lane_take(struct job_queue *q, struct job *j);
/* The job starts to run, or stops running. The latter may free the lane. */
void lane_enter(struct job *j);
void lane_leave(struct job_queue *q, struct job *j);
/* Take the next job of this class that can start from its lane; NULL: none. */
struct job *lane_next(struct job_queue *q, enum job_class class_);
/* Free the lane if it has no waiting and no running jobs. */
void lane_free_if_empty(struct job_queue *q, struct job_lane *l);
void lanes_free(struct job_queue *q);

static inline enum job_class job_class_of(const struct job_kind *k)
{
	return k->flags & JOB_LONG ? JOB_CLASS_LONG : JOB_CLASS_QUICK;
}

/* asker.c. Returns the asker of this name, and creates it if needed. NULL: no memory. */
struct job_asker *asker_of(struct job_queue *q, const char *name);
void asker_free_if_empty(struct job_queue *q, struct job_asker *a);
/* Append a lane to those of its asker that can start a job of this class. */
void asker_add_ready(struct job_queue *q, struct job_lane *l, enum job_class class_);
/* Let the asker wait for its turn, if it can start a job of this class. */
void asker_list(struct job_queue *q, struct job_asker *a, enum job_class class_);
/* The next lane of the asker whose turn it is; NULL: none. */
struct job_lane *asker_next(struct job_queue *q, enum job_class class_);

/* queue.c: the job has run. Tells its owner and frees the job. */
void job_finish(struct job *j, const struct job_answer *a, const struct err *why);
/* The worker of this job died. */
void job_orphaned(struct job *j);
/* Assign waiting jobs to idle workers. */
void jobs_hand_out(struct job_queue *q);

/*
 * queue_workers.c: returns an idle worker of this class, or NULL; then it may request a new worker.
 */
struct job_worker *worker_idle(struct job_queue *q, enum job_class class_);
/* Send the job to the worker. -errno: the worker is unusable and ends. */
int worker_give(struct job_worker *w, struct job *j);
void worker_cancel(struct job_worker *w);
