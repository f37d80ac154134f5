/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk: the old index and the trees, merged in walk order, give the new index and the
 * differences. This file alone knows what a difference is:
 *
 *   in the index  | in the upper | in the lower           | it is
 *   --------------+--------------+------------------------+------------------------------------
 *   -             | entry        | -, or another type     | new (and the other is gone)
 *   -             | entry        | same type              | a copy-up: new where mtime, size,
 *                 |              |                        | mode or content differ; touched
 *                 |              |                        | where content cannot be compared;
 *                 |              |                        | directories: mode only, or gone
 *                 |              |                        | and new where opaque
 *   whiteout      | entry        | not asked              | new
 *   entry         | same inode   | not asked              | changed where mtime, size or mode
 *                 |              |                        | differ; touched where only ctime
 *                 |              |                        | does; directories: mode only
 *   entry         | other inode  | not asked              | gone and new, a pair if of one type
 *   entry         | -, whiteout  | not asked              | gone
 *   -             | whiteout     | gives type and numbers | gone
 *
 * Touched is all that may hide a change of content, because size and mtime can be put back
 * from inside and ctime cannot. It is also all else that moves ctime: a changed owner, an
 * xattr, a hard link made or removed. The content of a copy-up can be asked (links, and files
 * up to CHANGES_COMPARE_FILE): where it is the lower's, nothing is said, so that opening for
 * writing is no change; nor is, at first, a changed owner or xattr.
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
	struct changes_report *report; /* NULL: only the index is wanted */
	uint32_t root;
	/* The directories of a subtree that is gone, by depth. */
	uint32_t gone_dirs[LIMIT_WALK_DEPTH + 1];
};

/* 0 or -errno. The caller prepares and releases the parts, and commits the index. */
int changes_merge(struct changes_merge *m, const struct changes_root *roots, int nroots);
