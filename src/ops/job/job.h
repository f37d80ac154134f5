/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: operations that a process with a loop has done by worker processes, because operations
 * block. A table of kinds says what can be asked for; queue (queue.h) and workers (worker.h) have
 * the same table.
 */
#pragma once

#include "ops/cay.h"
#include "wire/job_proto.h"

enum job_flags {
	JOB_EXCLUSIVE = 1, /* no other job of its sandbox runs beside it */
	JOB_READ_ONLY = 2, /* may run again if its worker died; ends when nobody waits for it */
	JOB_LONG = 4,	   /* by a worker of its own class */
};

enum {
	LIMIT_JOB_BODY = LIMIT_FRAME_BODY - 16 * 1024, /* what a job is asked with, or answers */
	LIMIT_JOBS_OF_KEY = 64,			       /* that wait, of one sandbox */
	LIMIT_JOBS = 1024,			       /* that wait, in all */
};

/* A job in its worker. */
struct job_run {
	struct cay *cay;  /* its waiter has the job's deadline and cancellation */
	const void *ctx;  /* of the worker's program */
	const char *key;  /* the sandbox, or empty */
	struct str in;	  /* borrowed */
	struct buf *out;  /* the answer, at most LIMIT_JOB_BODY */
	int fds[JOB_FDS]; /* that go with the answer; the worker closes them if it fails */
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
