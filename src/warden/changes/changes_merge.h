/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk: merge the old index and the trees in walk order into the new index and the differences.
 * This file alone defines a difference:
 *
 *   in the index  | in the upper | in the lower           | result
 *   --------------+--------------+------------------------+------------------------------------
 *   -             | entry        | -, or another type     | new (and the other is gone)
 *   -             | entry        | same type              | a copy-up: new if mtime, size, mode
 *                 |              |                        | or content differ; touched if the
 *                 |              |                        | content cannot be compared;
 *                 |              |                        | directories: mode only, or gone
 *                 |              |                        | and new if opaque
 *   whiteout      | entry        | not read               | new
 *   entry         | same inode   | not read               | changed if mtime, size or mode
 *                 |              |                        | differ; touched if only ctime
 *                 |              |                        | does; directories: mode only
 *   entry         | other inode  | not read               | gone and new, a pair if same type
 *   entry         | -, whiteout  | not read               | gone
 *   -             | whiteout     | gives type and numbers | gone
 *
 * "Touched" covers everything that may hide a change of content: a sandbox can restore size and
 * mtime, but not ctime. It also covers other causes of a new ctime: a changed owner, an xattr, a
 * hard link made or removed. The content of a copy-up can be compared for links and for files up to
 * CHANGES_COMPARE_FILE. If it equals the lower's, there is no event, so opening a file for writing
 * is not a change. The first change of an owner or xattr is not reported for the same reason.
 */
#pragma once

#include "base/limits.h"
#include "warden/changes/changes_index.h"
#include "warden/changes/changes_report.h"
#include "warden/changes/changes_tree.h"

struct changes_merge {
	struct changes_reader old;
	struct changes_writer new;
	struct changes_tree tree;
	struct changes_report *report; /* NULL: only build the index */
	bool only_short;	       /* -EOVERFLOW if the walk turns out to be long */
	uint32_t entries;
	uint32_t root;
	/* The directories of a deleted subtree, by depth. */
	uint32_t gone_dirs[LIMIT_WALK_DEPTH + 1];
};

/* 0 or -errno. The caller prepares and releases the parts, and commits the index. */
int changes_merge(struct changes_merge *m, const struct changes_root *roots, int nroots);
