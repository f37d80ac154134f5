/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long walk, outside the warden's loop.
 *
 *   start    fork. The child compares trees and index, writes the differences to a memory file and
 *            the new index to a file without a name, and exits.
 *   collect  the child has exited: take over the differences. If it died, nothing has happened, and
 *            a new job finds the same differences.
 *   emit     write events, some at a time; with the last one the new index replaces the old one.
 *
 * The child runs the same code as a walk in the loop, with the same limits on memory. It has only
 * the descriptors that it needs, and it dies with the warden. The calls of the changes are decided
 * when the child has exited, so calls that began during the walk are candidates too.
 */
#pragma once

#include "warden/changes/changes.h"

struct changes_job;

/* c must outlive the job, and must not be walked meanwhile. */
int changes_job_start(struct changes *c, const struct changes_call *calls, int ncalls,
		      struct changes_job **ret, struct err *e);
/* Ends the child if it still runs. */
void changes_job_free(struct changes_job *j);
DEFINE_AUTO_PTR(struct changes_job, changes_job_free)

/* Readable when the child has exited. FD_NONE after changes_job_collect(). */
int changes_job_pidfd(const struct changes_job *j);
/*
 * Wait for the child. `calls`: those of changes_job_start() and the later ones. 0, or -errno: the
 * walk failed, and the job is of no further use.
 */
int changes_job_collect(struct changes_job *j, const struct changes_call *calls, int ncalls);
/* Process up to `most` differences. 1: there are more; 0: done; -1: failed. */
int changes_job_emit(struct changes_job *j, const struct changes_sink *to, uint32_t most,
		     struct err *e);
