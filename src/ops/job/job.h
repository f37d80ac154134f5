/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: operations that a process with a loop hands to worker processes, because operations block.
 * A table lists the kinds of jobs; the queue (queue.h) and the workers (worker.h) use the same
 * table.
 */
#pragma once

#include "ops/cay.h"
#include "wire/job_proto.h"

enum job_flags {
	JOB_EXCLUSIVE = 1, /* runs alone among the jobs of its sandbox */
	JOB_READ_ONLY =
		2,    /* may run again if its worker died; is cancelled if its owner drops it */
	JOB_LONG = 4, /* runs in a worker for long jobs */
};

enum {
	LIMIT_JOB_BODY = LIMIT_FRAME_BODY - 16 * 1024, /* maximum size of a request or an answer */
	LIMIT_JOBS_OF_KEY = 64,			       /* waiting jobs of one lane */
	LIMIT_JOBS_OF_ASKER = 256,		       /* the same of one asker */
	LIMIT_JOBS = 1024,			       /* waiting jobs in total */
};

/* A job inside its worker. */
struct job_run {
	struct cay *cay;  /* its waiter has the job's deadline and cancellation */
	const void *ctx;  /* from the worker's program */
	const char *key;  /* sandbox id, or empty */
	struct str in;	  /* borrowed */
	struct buf *out;  /* the answer, at most LIMIT_JOB_BODY */
	int fds[JOB_FDS]; /* sent with the answer; the worker closes them on failure */
	int nfds;
};

struct job_kind {
	const char *name;
	unsigned flags;
	int (*run)(struct job_run *r, struct err *e);
};

struct job_table {
	const struct job_kind *kinds;
	size_t n;
};

static inline const struct job_kind *job_kind_find(const struct job_table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->kinds[i].name, name) == 0)
			return &t->kinds[i];
	return NULL;
}
