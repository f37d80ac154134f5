/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths in a git index. git trusts this file: `git checkout -- .` writes every path that the
 * index names, even .git/hooks/post-checkout. So we check an index from a sandbox before it reaches
 * the host.
 *
 * The check is strict because git has two ways to read an index. Only versions 2 to 4 with SHA-1
 * and a correct checksum pass, and the offset tables that git's threads use (EOIE, IEOT) must agree
 * with the entries.
 */
#pragma once

#include "base/str.h"

/*
 * NULL if no path in the index leads into a .git directory or out of the work tree. Otherwise the
 * reason, which completes "the index ...".
 */
const char *git_index_fault(struct str bytes);
