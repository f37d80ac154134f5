/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between a job queue and its workers (ops/job). Pure: any bytes give a complete result
 * or an error. The channel is the job's number.
 *
 *   W_DO        queue to worker   KIND KEY TIMEOUT_MS IN
 *   W_PROGRESS  worker to queue   STAGE DONE TOTAL
 *   W_DONE      worker to queue   OUT and 0 to 2 descriptors, or ERROR and its parts
 */
#pragma once

#include "base/limits.h"
#include "wire/frame.h"

enum job_message { W_DO = 1, W_PROGRESS = 2, W_DONE = 3 };

enum job_tag {
	JOB_TAG_KIND = 1,
	JOB_TAG_KEY,
	JOB_TAG_TIMEOUT_MS, /* remaining time */
	JOB_TAG_IN,
	JOB_TAG_STAGE,
	JOB_TAG_DONE,
	JOB_TAG_TOTAL,
	JOB_TAG_OUT,
	JOB_TAG_ERROR, /* name of the kind of error */
	JOB_TAG_ERRNO,
	JOB_TAG_CODE,
	JOB_TAG_FIELD,
	JOB_TAG_ABOUT,
	JOB_TAG_TEXT,
	JOB_TAG_HINT,
	/* Fields of a link that is passed on, inside OUT. */
	JOB_TAG_ID,
	JOB_TAG_VERSION,
	JOB_TAG_CHANNEL,
	JOB_TAG_MORE,
};

enum { JOB_KIND_SIZE = 32, JOB_KEY_SIZE = 32, JOB_FDS = 2 };

struct job_do {
	char kind[JOB_KIND_SIZE], key[JOB_KEY_SIZE];
	uint64_t timeout_ms;
	struct str in; /* borrowed */
};

struct job_progress {
	char stage[64];
	uint64_t done, total;
};

struct job_done {
	bool failed;
	struct err why; /* if it failed */
	struct str out; /* borrowed */
};

/* A connection to a warden that travels with an answer. */
struct job_link {
	char id[JOB_KEY_SIZE];
	uint64_t version, channel;
	struct str more; /* the rest of the answer; borrowed */
};

/* Append the fields. 0 or -errno; -EMSGSIZE if they do not fit into a frame. */
int job_do_put(struct buf *b, const struct job_do *d);
int job_progress_put(struct buf *b, const struct job_progress *p);
int job_done_put(struct buf *b, const struct job_done *d);
int job_link_put(struct buf *b, const struct job_link *l);

/* -EBADMSG: a field is malformed, too long or missing. */
int job_do_read(struct str body, struct job_do *ret);
int job_progress_read(struct str body, struct job_progress *ret);
int job_done_read(struct str body, struct job_done *ret);
int job_link_read(struct str body, struct job_link *ret);
