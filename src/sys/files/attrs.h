/* SPDX-License-Identifier: Apache-2.0 */
/* File metadata: owner, mode, extended attributes, times. */
#pragma once

#include <stdbool.h>

/*
 * Overlays that root mounted keep their marks in trusted.overlay.*, those of a user namespace in
 * user.overlay.*; `privileged` selects which. An attribute with the other prefix is an ordinary
 * attribute that a sandbox can write. So is one that overlayfs escaped with another "overlay.",
 * because a process inside chose that name.
 */
const char *attrs_overlay_prefix(bool privileged);
/* True if the attribute is a mark of overlayfs. */
bool attrs_is_overlay(const char *name, bool privileged);

/*
 * Copy the attributes of `from` to `to`, except marks of overlayfs. Both are open files or
 * directories, or O_PATH descriptors of any file. 0 or -errno.
 */
int attrs_copy(int from, int to, bool privileged);
/*
 * Copy only the extended attributes, including marks of overlayfs, as in the other tree; without
 * privileges only those that any owner may set. 0 or -errno.
 */
int attrs_copy_all_xattrs(int from, int to, bool privileged);
/* True if both have the same extended attributes. b may be negative: a file without attributes. */
bool attrs_same_xattrs(int a, int b, bool privileged);
/* True if a directory of a layer hides the directories below it. */
bool attrs_is_opaque(int fd, bool privileged);
/* Make a directory opaque. 0 or -errno. */
int attrs_set_opaque(int fd, bool privileged);
