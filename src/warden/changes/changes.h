/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files changed, and which call changed them.
 *
 * A sandbox writes only to the upper directories of its overlays. changes_walk() compares
 * them with an index of what was there at the last walk and reports every difference as a
 * `file.*` event. The index is read and rewritten as one merge in walk order; beyond a few
 * hundred entries it is a file on disk, so that memory does not grow with the upper.
 *
 * A file.change with "what":"mode" or "what":"touched" is one whose size and mtime are as
 * before; "mode": the mode is not; "touched": it is as well, but the ctime has moved, or, of
 * a file of the lower that is new in the upper, the content could not be compared. Content
 * may have been rewritten behind either. changes_merge.h has the whole table. Before Linux
 * 6.13 what is rewritten within the same tick in which the walk looked at it goes unseen.
 *
 * Attribution: an inode's ctime cannot be set from inside, so a change belongs to a call
 * whose time window holds the ctime. Exactly one such call: certain. Several: the event
 * carries "certain":false and the list of candidates instead of a guess. Of a name that is
 * gone only its directory's ctime is left, which is not earlier than the removal: candidates
 * are all calls that had begun by then.
 *
 * Cost: about one statx per entry of the upper; the first time that a file of the lower is
 * found there unchanged by size and mtime, its content is read. The owner asks changes_due(): after
 * a walk of length T the next one may begin 30 T later, so that walking never takes more than about
 * 3 % of the time, however large the upper; a forced walk ignores that.
 */
#pragma once

#include "trace/log.h"

struct changes;
struct changes_base;

struct changes_root {
	int upper_fd;	   /* borrowed */
	const char *dest;  /* where the overlay is mounted inside, "/" for the root */
	int lower_fd;	   /* lowest directory, to tell "changed" from "created"; or FD_NONE */
	const int *layers; /* sealed layers above it, topmost first; borrowed with what they name */
	int nlayers;
	bool privileged;	   /* whose marks: sys/files/attrs.h */
	struct changes_base *base; /* where to keep what files held at first; or NULL */
};

/* One call that may have changed something since the last walk. */
struct changes_call {
	uint32_t call;
	uint64_t start_ns; /* clock_coarse_ns() when it began */
	uint64_t end_ns;   /* clock_real_ns() when its last process was gone; UINT64_MAX: runs */
};

/* Where the index is a file, it is below dirfd. What is in the uppers now is not reported. */
int changes_new(int dirfd, const struct changes_root *roots, int nroots, struct changes **ret,
		struct err *e);
void changes_free(struct changes *c);

/* Nanoseconds until a walk is due again; 0: now. */
uint64_t changes_due(const struct changes *c);

/*
 * Walk, and write the events. `calls` are those that ran at any time since the last walk.
 * parent_of gives the event under which a call's changes stand (its call.start).
 */
int changes_walk(struct changes *c, const struct changes_call *calls, int ncalls, struct trace *t,
		 uint64_t (*parent_of)(void *ctx, uint32_t call), void *ctx, struct err *e);
