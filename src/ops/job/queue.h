/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of jobs, on the loop of the process that asks. Never blocks.
 *
 *   job_start ──> waits in the lane of its sandbox ──> runs in a worker ──> done (told once)
 *
 * Lanes: jobs of one sandbox begin in the order of job_start(). An exclusive job runs alone in its
 * lane; others run side by side. Jobs without a sandbox wait for nothing but a worker.
 *
 * Workers come in two classes: quick ones, and ones for jobs that take long. The queue asks the
 * host (struct job_host) for processes; in a jail the host is another process.
 *
 *   worker:  NONE ──> STARTING ──> IDLE <──> BUSY        any ──> ENDING ──> RESTING ──> NONE
 *
 * A worker that dies in a job: the job is answered FAILED, code outcome.unknown, or runs once more
 * if it is read-only. A worker that is busy 5 s after its job's deadline is killed.
 */
#pragma once

#include "loop/conn.h"
#include "ops/job/job.h"

struct job;
struct job_queue;

/* The answer of a job. The callback owns the descriptors. */
struct job_answer {
	struct str out; /* borrowed */
	int fds[JOB_FDS];
	int nfds;
};

struct job_spec {
	const char *kind;
	const char *key;     /* id of the sandbox; NULL: none */
	struct str in;	     /* copied */
	uint64_t timeout_ms; /* waiting included; 0: JOB_TIMEOUT_MS */
	/* Once: an answer, or why there is none. The job is gone then. */
	void (*done)(void *ctx, const struct job_answer *a, const struct err *why);
	void (*progress)(void *ctx, const struct job_progress *p); /* or NULL */
	void *ctx;
};

enum job_class { JOB_CLASS_QUICK, JOB_CLASS_LONG, JOB_CLASSES };

enum {
	JOB_TIMEOUT_MS = 60000,
	JOB_QUICK_MOST = 8,
	JOB_LONG_MOST = 4,
	JOB_WORKERS = JOB_QUICK_MOST + JOB_LONG_MOST,
	JOB_GRACE_MS = 5000, /* from a job's deadline to the kill of its worker */
	JOB_LONG_IDLE_MS = 30000,
	JOB_REST_FIRST_MS = 50, /* after a worker died; doubles */
	JOB_REST_LAST_MS = 5000,
};

/*
 * Who has worker processes. start() is answered by job_queue_started() or job_queue_gone(), also
 * from within; kill() by job_queue_gone(), not from within.
 */
struct job_host {
	void (*start)(void *ctx, int slot);
	void (*kill)(void *ctx, int slot);
	void *ctx;
};

enum job_worker_state {
	WORKER_NONE,
	WORKER_STARTING,
	WORKER_IDLE,
	WORKER_BUSY,
	WORKER_ENDING,	/* its process is not known to be gone yet */
	WORKER_RESTING, /* before the next start */
};

struct job_worker {
	struct job_queue *queue;
	enum job_worker_state state;
	struct conn conn;
	int cancel_fd; /* eventfd; FD_NONE: none */
	struct job *job;
	struct loop_timer timer; /* BUSY, ENDING: kill; IDLE: end; RESTING: start */
	uint64_t rest_ms;	 /* the next rest; 0: the first */
	bool retired;		 /* we let it go: no rest */
};

struct job_lane {
	char key[JOB_KEY_SIZE];
	struct job *head, *tail; /* waiting */
	int waiting, shared;	 /* shared: that run now */
	bool exclusive;		 /* one runs now */
	bool ready;		 /* in the list of ready lanes */
	struct job_lane *next_ready, *next;
};

struct job_queue {
	struct loop *loop;
	const struct job_table *table;
	struct job_host host;
	struct job_worker workers[JOB_WORKERS]; /* quick ones first */
	int most[JOB_CLASSES];
	struct job_lane *lanes[256];
	struct job_lane *ready[JOB_CLASSES], **ready_end[JOB_CLASSES];
	int waiting, waiting_of[JOB_CLASSES];
	uint32_t number;
	bool handing_out, again;
};

/* table and loop are borrowed. quick, longs: most workers of each class. */
void job_queue_init(struct job_queue *q, struct loop *l, const struct job_table *table,
		    const struct job_host *host, int quick, int longs);
/* Tells no job anything more. Workers end as their sockets close. Not from a callback. */
void job_queue_done(struct job_queue *q);

/* LIMIT, code jobs.full, where too many wait; NULL then. */
struct job *job_start(struct job_queue *q, const struct job_spec *spec, struct err *e);
/* Nobody waits any more: nothing is told. A waiting job never runs, a read-only one is cancelled,
 * another one finishes. */
void job_drop(struct job *j);
/* Asks it to end: `done` comes with code "cancelled", unless its result is there before. */
void job_cancel(struct job *j);

/* From the host: a process has begun. Owns the descriptors. */
void job_queue_started(struct job_queue *q, int slot, int sock, int cancel_fd);
/* From the host: the process of this slot has ended, or did not begin. */
void job_queue_gone(struct job_queue *q, int slot);

static inline enum job_class job_slot_class(int slot)
{
	return slot < JOB_QUICK_MOST ? JOB_CLASS_QUICK : JOB_CLASS_LONG;
}
/* Jobs that wait, and workers that are busy. */
int job_queue_waiting(const struct job_queue *q);
int job_queue_busy(const struct job_queue *q);
