/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of jobs, on the loop of the process that asks. Never blocks.
 *
 *   job_start ──> waits in the lane of its sandbox ──> runs in a worker ──> done (called once)
 *
 * Lanes: jobs of one asker for one sandbox start in the order of job_start(). An exclusive job runs
 * alone in its lane; others run in parallel. Jobs without a sandbox wait only for a worker.
 *
 * Askers take turns: each gets one job started, then the next asker. No asker but the host's user
 * has all workers of a class, or more than LIMIT_JOBS_OF_ASKER waiting jobs.
 *
 * There are two classes of workers: for quick jobs and for long jobs. The queue asks the host
 * (struct job_host) for processes; in a jail the host is another process.
 *
 *   worker:  NONE ──> STARTING ──> IDLE <──> BUSY        any ──> ENDING ──> RESTING ──> NONE
 *
 * If a worker dies, its job fails with FAILED, code outcome.unknown, or runs once more if it is
 * read-only. A worker that is still busy 5 s after its job's deadline is killed.
 */
#pragma once

#include "loop/conn.h"
#include "ops/job/job.h"

struct job;
struct job_queue;

/* The answer to a job. The callback owns the descriptors. */
struct job_answer {
	struct str out; /* borrowed */
	int fds[JOB_FDS];
	int nfds;
};

struct job_spec {
	const char *kind;
	const char *key;     /* id of the sandbox; NULL: none */
	const char *asker;   /* who asks, such as the id of an API key; NULL: the host's user */
	struct str in;	     /* copied */
	uint64_t timeout_ms; /* includes the wait; 0: JOB_TIMEOUT_MS */
	/* Called once, with an answer or the error. The job is freed afterwards. */
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
	JOB_GRACE_MS = 5000, /* from a job's deadline until its worker is killed */
	JOB_LONG_IDLE_MS = 30000,
	JOB_REST_FIRST_MS = 50, /* pause after a worker died; doubles each time */
	JOB_REST_LAST_MS = 5000,
};

/*
 * Manages worker processes. Replies to start() with job_queue_started() or job_queue_gone(),
 * possibly inside the call. Replies to kill() with job_queue_gone(), never inside the call.
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
	WORKER_ENDING,	/* the process may still exist */
	WORKER_RESTING, /* pause before the next start */
};

struct job_worker {
	struct job_queue *queue;
	enum job_worker_state state;
	struct conn conn;
	int cancel_fd; /* eventfd; FD_NONE: none */
	struct job *job;
	struct loop_timer timer; /* BUSY, ENDING: kill; IDLE: retire; RESTING: start */
	uint64_t rest_ms;	 /* length of the next pause; 0: the first */
	bool retired;		 /* the queue ended it: no pause */
};

/* Who asks. Exists while it has lanes. */
struct job_asker {
	char name[JOB_KEY_SIZE]; /* empty: the host's user */
	int lanes, waiting, running[JOB_CLASSES];
	struct job_lane *ready[JOB_CLASSES], **ready_end[JOB_CLASSES];
	bool listed[JOB_CLASSES]; /* waits for its turn */
	struct job_asker *next_turn[JOB_CLASSES], *next;
};

struct job_lane {
	char key[JOB_KEY_SIZE];
	struct job_asker *asker;
	struct job *head, *tail; /* waiting jobs */
	int waiting, shared;	 /* shared: non-exclusive jobs that run now */
	bool exclusive;		 /* an exclusive job runs now */
	bool ready;		 /* in its asker's list of ready lanes */
	struct job_lane *next_ready, *next;
};

struct job_queue {
	struct loop *loop;
	const struct job_table *table;
	struct job_host host;
	struct job_worker workers[JOB_WORKERS]; /* workers for quick jobs first */
	int most[JOB_CLASSES];
	struct job_lane *lanes[256];
	struct job_asker *askers;
	struct job_asker *turn[JOB_CLASSES],
		**turn_end[JOB_CLASSES]; /* those that can start a job */
	int waiting, waiting_of[JOB_CLASSES];
	uint32_t number;
	bool handing_out, again;
};

/* table and loop are borrowed. quick, longs: maximum number of workers of each class. */
void job_queue_init(struct job_queue *q, struct loop *l, const struct job_table *table,
		    const struct job_host *host, int quick, int longs);
/*
 * Calls no more callbacks. Workers end when their sockets close. Must not be called from a
 * callback.
 */
void job_queue_done(struct job_queue *q);

/* Returns NULL with LIMIT, code jobs.full, if too many jobs wait. */
struct job *job_start(struct job_queue *q, const struct job_spec *spec, struct err *e);
/*
 * The owner no longer wants the result, and `done` is not called. A waiting job never runs, a
 * read-only job is cancelled, any other job finishes.
 */
void job_drop(struct job *j);
/* Asks a job to end: `done` gets code "cancelled", unless the result arrives first. */
void job_cancel(struct job *j);

/* From the host: a process has started. Takes the descriptors. */
void job_queue_started(struct job_queue *q, int slot, int sock, int cancel_fd);
/* From the host: the process of this slot has ended or did not start. */
void job_queue_gone(struct job_queue *q, int slot);

static inline enum job_class job_slot_class(int slot)
{
	return slot < JOB_QUICK_MOST ? JOB_CLASS_QUICK : JOB_CLASS_LONG;
}
/* The number of waiting jobs, and of busy workers. */
int job_queue_waiting(const struct job_queue *q);
int job_queue_busy(const struct job_queue *q);
