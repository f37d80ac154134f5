/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox changed, or how two sandboxes or snapshots differ. Works while commands run, and
 * on lost sandboxes. A change goes to a callback, because there may be many; or to a patch.
 */
#pragma once

#include "diff/count.h"
#include "ops/cay.h"
#include "ops/diff_view.h"

/* One change. All of it is borrowed for the time of the callback. */
struct diff_change {
	const char *dest;	 /* where inside the mount is; entry->path lies below it */
	const struct diff *diff; /* that the entry is of */
	const struct diff_entry *entry;
	bool counted; /* n is known: the spec asked for it */
	struct patch_counts n;
};

struct diff_spec {
	const char *sandbox; /* or a snapshot: id, name or prefix of an id */
	/*
	 * At most one of these, each a sandbox or snapshot; none: the sandbox is compared with what
	 * it started from.
	 */
	const char *from;	/* the old side; the new one is `sandbox` */
	const char *to;		/* the new side; the old one is `sandbox` */
	const char *to_or_path; /* the same where there is one called so, else one more path */
	/* Only these and what lies below; relative ones begin at the sandbox's first directory. */
	const char *const *paths;
	int npaths;
	const char *call; /* only files that this call changed: its number, or the caller's id */
	bool no_renames;  /* a renamed file is one deleted and one added */
	bool count;	  /* count lines: diff_change.n, diff_result.totals */
	/*
	 * Write a patch here that git apply takes, and call no function. Without paths it is about
	 * the sandbox's first directory, if it has one. It fills diff_result.totals.
	 */
	FILE *patch;
	/* For each change, sorted by path in each mount; non-zero: stop. NULL: only count them. */
	int (*fn)(void *ctx, const struct diff_change *c);
	void *ctx;
};

struct diff_result {
	uint64_t changes;
	struct diff_totals totals; /* of what was counted, or is in the patch */
	/* Not in the patch: they are of .git, or could make git or its like run a command. */
	uint64_t guarded;
	/* The first of totals.host_changed: the host changed the file since, and what the sandbox
	 * started from was not kept. Such a patch lacks something. */
	char host_changed_first[LIMIT_PATH];
	struct warnings warnings; /* diff.unread, diff.lone */
};

/*
 * NOT_FOUND where something is called neither so nor so; code diff.no_such where to_or_path is
 * neither a sandbox, nor a snapshot, nor a path inside.
 */
int op_diff(struct cay *c, const struct diff_spec *spec, struct diff_result *ret, struct err *e);

/* How much two of them differ. */
int diff_sum(const struct diff_view *old, const struct diff_view *new, struct diff_totals *ret,
	     struct err *e);
