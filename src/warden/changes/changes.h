/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files changed, and which call changed them.
 *
 * A sandbox writes only to the upper directories of its overlays. changes_walk() compares the
 * uppers with an index of the last walk and reports every difference as a `file.*` event. It reads
 * and rewrites the index as one merge in walk order. Beyond a few hundred entries the index is a
 * file on disk, so that memory does not grow with the upper.
 *
 * A file.change with "what" has the old size and mtime, but its content may have changed. "mode":
 * the mode differs. "touched": the mode is the same, but the ctime differs; or the file is a
 * copy-up whose content could not be compared with the lower's. changes_merge.h has the whole
 * table. Before Linux 6.13, a walk misses a rewrite within the tick in which the walk examined the
 * file.
 *
 * Attribution: a sandbox cannot set an inode's ctime, so a change belongs to a call whose time
 * window contains the ctime, and that was not idle then (changes_idle.h). With exactly one such
 * call it is certain, and "known_by" says why: "time" if no other call ran, "idle" if the others
 * used no processor time. With several, the event has "certain":false and the list of candidates. A
 * deleted name leaves only its directory's ctime, which is not earlier than the removal: the
 * candidates are all calls that had begun by then, but for those idle since the last walk.
 *
 * Cost: about one statx per entry of the upper. When a file of the lower first appears there with
 * the same size and mtime, its content is read. The owner asks changes_due(): after a walk of
 * length T the next one may begin 30 T later. So walks take at most about 3 % of the time, however
 * large the upper. A forced walk ignores this.
 */
#pragma once

#include "trace/log.h"
#include "warden/changes/changes_idle.h"

struct changes;
struct changes_base;

struct changes_root {
	int upper_fd;	   /* borrowed */
	const char *dest;  /* mount point of the overlay inside; "/" for the root */
	int lower_fd;	   /* lowest directory, to tell "changed" from "created"; or FD_NONE */
	const int *layers; /* sealed layers above it, topmost first; borrowed, also the array */
	int nlayers;
	bool privileged;	   /* which overlay marks count: sys/files/attrs.h */
	struct changes_base *base; /* where to keep the original content of files; or NULL */
};

/* A call that may have changed files since the last walk. */
struct changes_call {
	uint32_t call;
	bool covered;	   /* it had ended before the walk in progress began */
	uint64_t event;	   /* its call.start, the parent of its changes */
	uint64_t start_ns; /* clock_coarse_ns() at its start */
	uint64_t end_ns;   /* clock_real_ns() when its last process had gone; UINT64_MAX: running */
	struct changes_idles idle;
};

/* Where events go. */
struct changes_sink {
	struct trace *trace;
	uint64_t before; /* the event that the changes preceded, if it is in the trace; or 0 */
};

/* An index file is made below dirfd. The present content of the uppers is not reported. */
int changes_new(int dirfd, const struct changes_root *roots, int nroots, struct changes **ret,
		struct err *e);
void changes_free(struct changes *c);

/* Nanoseconds until the next walk is due; 0: now. */
uint64_t changes_due(const struct changes *c);

/* Replace the borrowed descriptors of the roots by duplicates, to outlive their owner. */
int changes_keep(struct changes *c, struct err *e);

/* Walk, and write the events. `calls`: every call that ran at any time since the last walk. */
int changes_walk(struct changes *c, const struct changes_call *calls, int ncalls,
		 const struct changes_sink *to, struct err *e);
/*
 * The same, unless the walk is long: then 0, and nothing was written. 1: done; -1: failed. A short
 * walk takes less time than starting a process for it (changes_job.h).
 */
int changes_walk_short(struct changes *c, const struct changes_call *calls, int ncalls,
		       const struct changes_sink *to, struct err *e);
