/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File names that some file systems take for another name. A directory of the host can lie on one
 * that ignores case (ext4 with casefold, macOS through a VM's shared folder), characters without a
 * width (HFS+, ext4 with casefold), or dots and spaces at the end and a stream's name (NTFS through
 * WSL). There `.GIT`, `.g<U+200C>it` and `.git.` all open `.git`.
 */
#pragma once

#include "base/str.h"

/* Whether any of these file systems could open `target`, in lower case, by this name. */
bool name_is_alias(struct str name, const char *target);
/* The same for .git, also by the short name that NTFS gives to it, git~1. */
bool name_is_git(struct str name);
