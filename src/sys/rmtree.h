/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of a tree whose content nobody vouches for. */
#pragma once

/*
 * Remove `name` below dirfd, a file or a directory with all that it holds. Follows no symbolic
 * link and enters no mount. Goes on after a failure; 0, or the first failure as -errno (-EXDEV:
 * something is mounted there). What is not there counts as removed.
 *
 * Any depth of tree takes a bounded number of descriptors and no recursion. Directories of the
 * caller that lack permissions are given them. `name` is one component or a path of the
 * caller's own; nobody else may be renaming in the tree's parents.
 */
int rmtree_at(int dirfd, const char *name);
