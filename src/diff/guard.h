/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds files that a host tool would act on. git runs commands that .git/config and .git/hooks
 * name, and it writes through symbolic links in .git. So only history is applied from a
 * repository's own directory, and only as regular files and directories. The same holds for
 *
 *   - .git at any depth (nested repositories and submodules), by any name that some file system
 *     treats as .git (wire/name_alias.h), and files called .git, which name another repository;
 *   - directories that git treats as a bare repository, under any name: those with HEAD and either
 *     objects and refs, or commondir;
 *   - the directories of other tools, such as .hg, .jj and .svn: nothing of them is applied.
 */
#pragma once

#include "diff/apply.h"

struct guard {
	int dir_fd;		 /* the host directory; FD_NONE: none */
	const struct diff *diff; /* sorted; all of it counts, not only the checked entry */
	bool take_config;	 /* --git-config: leave out only links and cay's own directory */
};

/* An enum apply_why if the entry is left out, else -1. */
int guard_check(const struct guard *g, const struct diff_entry *en);
/*
 * True if the entry may be in a patch. Excludes everything in .git, because git apply would reject
 * the whole patch, and everything that guard_check() leaves out.
 */
bool guard_in_patch(const struct guard *g, const struct diff_entry *en);
/* True if the path is a repository's index: its content must be checked too. */
bool guard_is_index(const struct guard *g, const char *path);
/* False if the host's repository has ids of a length that the check does not support. */
bool guard_index_has_sha1(const struct guard *g, const char *path);
/* False if this index could mislead git, or is too large to check. */
bool guard_index_ok(int fd);
