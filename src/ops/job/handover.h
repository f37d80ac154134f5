/* SPDX-License-Identifier: Apache-2.0 */
/* A link that a worker opened and the queue's process goes on with. */
#pragma once

#include "link/link.h"
#include "ops/job/queue.h"

/* In a worker: connect to the sandbox; the link goes with the answer, and so does `more`. */
int job_give_link(struct job_run *r, const char *id, struct str more, struct err *e);
/* In the queue's process: the link that an answer carries. Takes the answer's first descriptor,
 * whatever the result. */
int job_take_link(struct loop *l, struct job_answer *a, const struct link_ops *ops, void *owner,
		  struct link **ret, struct err *e);
