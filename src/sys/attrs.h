/* SPDX-License-Identifier: Apache-2.0 */
/* What a file has beside its content: owner, mode, extended attributes, times. */
#pragma once

#include <stdbool.h>

enum {
	ATTRS_OPAQUE = 1, /* also that a directory of a layer hides those below it */
};

/*
 * Give `to` the attributes of `from`; both are open files or directories, or O_PATH descriptors
 * of anything. Extended attributes that overlayfs keeps for itself are left out. 0 or -errno.
 */
int attrs_copy(int from, int to, int flags);
/* Whether a directory of a layer hides those below it. */
bool attrs_is_opaque(int fd);
/* Make it so. privileged: with the attribute that rootful overlays use. 0 or -errno. */
int attrs_set_opaque(int fd, bool privileged);
