/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File names that some file systems treat as another name. A host directory can be on a file system
 * that ignores case (ext4 with casefold, macOS through a VM's shared folder), characters without a
 * width (HFS+, ext4 with casefold), or trailing dots and spaces and a stream name (NTFS through
 * WSL). There `.GIT`, `.g<U+200C>it` and `.git.` all open `.git`.
 */
#pragma once

#include "base/str.h"

/* True if any of these file systems could open `target` (in lower case) by this name. */
bool name_is_alias(struct str name, const char *target);
/* The same for .git, including its short name on NTFS, git~1. */
bool name_is_git(struct str name);
