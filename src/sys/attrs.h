/* SPDX-License-Identifier: Apache-2.0 */
/* What a file has beside its content: owner, mode, extended attributes, times. */
#pragma once

#include <stdbool.h>

/*
 * Overlays that root has mounted keep their marks in trusted.overlay.*, those of a user namespace
 * in user.overlay.*: `privileged` says which. What has the other name is a file's own, and a
 * sandbox can write it; so is what overlayfs has put another "overlay." before, for then somebody
 * inside has chosen the name.
 */
const char *attrs_overlay_prefix(bool privileged);
/* Whether it is a mark of overlayfs. */
bool attrs_is_overlay(const char *name, bool privileged);

/*
 * Give `to` the attributes of `from`; both are open files or directories, or O_PATH descriptors
 * of anything. Marks of overlayfs are left out. 0 or -errno.
 */
int attrs_copy(int from, int to, bool privileged);
/* Whether both have the same extended attributes; b may be negative: a file without any. */
bool attrs_same_xattrs(int a, int b, bool privileged);
/* Whether a directory of a layer hides those below it. */
bool attrs_is_opaque(int fd, bool privileged);
/* Make it so. 0 or -errno. */
int attrs_set_opaque(int fd, bool privileged);
