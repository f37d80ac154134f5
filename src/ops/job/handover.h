/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a link that a worker opened to the process of the queue. */
#pragma once

#include "link/link.h"
#include "ops/job/queue.h"

/* In a worker: connect to the sandbox and send the link and `more` with the answer. */
int job_give_link(struct job_run *r, const char *id, struct str more, struct err *e);
/*
 * In the queue's process: take the link from an answer. Always takes the answer's first descriptor,
 * even on failure.
 */
int job_take_link(struct loop *l, struct job_answer *a, const struct link_ops *ops, void *owner,
		  struct link **ret, struct err *e);
