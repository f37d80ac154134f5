/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes what a sandbox changed, or how two sandboxes or snapshots differ. Works while commands
 * run, and on lost sandboxes. Changes go to a callback, because there may be many; or into a patch.
 */
#pragma once

#include "diff/count.h"
#include "ops/cay.h"
#include "ops/diff_view.h"

/* One change. Everything is borrowed until the callback returns. */
struct diff_change {
	const char *dest;	 /* mount point inside; entry->path is relative to it */
	const struct diff *diff; /* the comparison that the entry belongs to */
	const struct diff_entry *entry;
	bool counted; /* n is valid: the spec asked for counts */
	struct patch_counts n;
};

struct diff_spec {
	const char *sandbox; /* a sandbox or snapshot: id, name or prefix of an id */
	/*
	 * At most one of these three, each a sandbox or snapshot. With none of them, the sandbox is
	 * compared with what it started from.
	 */
	const char *from; /* old side; `sandbox` is the new side */
	const char *to;	  /* new side; `sandbox` is the old side */
	const char *
		to_or_path; /* like `to` if such a sandbox or snapshot exists; else one more path */
	/*
	 * Only these paths and everything below them; relative ones start at the sandbox's first
	 * directory.
	 */
	const char *const *paths;
	int npaths;
	const char *call; /* only files that this call changed: its number, or the caller's id */
	bool no_renames;  /* show a rename as one deleted and one added file */
	bool count;	  /* count lines: diff_change.n, diff_result.totals */
	/*
	 * Write a patch for git apply here, and do not call fn. Without paths it covers only the
	 * sandbox's first directory, if there is one. Fills diff_result.totals.
	 */
	FILE *patch;
	/*
	 * Called for each change, sorted by path within each mount; non-zero stops. NULL: only
	 * count.
	 */
	int (*fn)(void *ctx, const struct diff_change *c);
	void *ctx;
};

struct diff_result {
	uint64_t changes;
	struct diff_totals totals; /* of the counted changes, or of the patch */
	/*
	 * Number of files left out of the patch because they are in .git, or could make git or
	 * similar tools run a command.
	 */
	uint64_t guarded;
	/*
	 * First file of totals.host_changed. The host changed it since, and its original was not
	 * kept. The patch is incomplete without it.
	 */
	char host_changed_first[LIMIT_PATH];
	struct warnings warnings; /* diff.unread, diff.lone */
};

/*
 * NOT_FOUND if a reference is neither a sandbox nor a snapshot; code diff.no_such if to_or_path is
 * neither a sandbox, nor a snapshot, nor a path inside.
 */
int op_diff(struct cay *c, const struct diff_spec *spec, struct diff_result *ret, struct err *e);

/* Totals of the differences between two views. */
int diff_sum(const struct diff_view *old, const struct diff_view *new, struct diff_totals *ret,
	     struct err *e);
