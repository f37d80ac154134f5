/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of changes.h, for changes_job.c: a walk in parts. */
#pragma once

#include "warden/changes/changes_base.h"
#include "warden/changes/changes_merge.h"

struct changes {
	int dirfd; /* borrowed */
	int nroots;
	struct changes_index index; /* empty until the first walk is done */
	uint64_t since_ns;	    /* clock_real_ns() when the last walk that is done began */
	uint64_t due_ns;	    /* clock_mono_ns() at which the next walk is due */
	/* changes_keep(): what the roots point to; NULL while it is borrowed */
	int *fds;
	int nfds;
	struct changes_base *bases;
	struct changes_root roots[];
};

/* Compare the index with the trees: fills the report, if any, and m->new. 0 or -errno. */
int changes_compare(struct changes_merge *m, const struct changes *c);
/* Release what changes_compare() needed. The merge is static: one walk at a time. */
void changes_merge_free(struct changes_merge *m);
DEFINE_AUTO_PTR(struct changes_merge, changes_merge_free)
struct changes_merge *changes_merge_new(const struct changes *c, struct changes_report *report);
/* A walk from start_ns to now is over: set when the next one is due. */
void changes_walked(struct changes *c, uint64_t start_ns);
