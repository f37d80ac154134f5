/* SPDX-License-Identifier: Apache-2.0 */
/* Remove a tree with untrusted content. */
#pragma once

/*
 * Remove `name` below dirfd: a file, or a directory with its content. Follows no symbolic link and
 * enters no mount. Continues after a failure. Returns 0, or the first failure as -errno (-EXDEV: a
 * mount is there). A missing name counts as removed.
 *
 * A tree of any depth needs a bounded number of descriptors and no recursion. Directories of the
 * caller that lack permissions get them. `name` is one component or a path from our own code; no
 * other process may rename in the tree's parents.
 */
int rmtree_at(int dirfd, const char *name);
