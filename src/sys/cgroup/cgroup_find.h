/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the control groups of this process. A host has one v2 hierarchy, or one v1 hierarchy per
 * controller, or both (hybrid).
 *
 * `root` is put before every path, also /proc: "" on a host, a directory in tests.
 */
#pragma once

#include <stddef.h>

/*
 * Write our own group's directory to `out`: in the v1 hierarchy of `controller`, or with NULL in
 * the v2 hierarchy. -ENOENT if there is no such hierarchy or it does not show our group.
 */
int cgroup_find(const char *root, const char *controller, char *out, size_t size);

/*
 * The leaf below its own group that the caller moves into, so that its group can have controllers.
 */
#define CGROUP_SELF "cay-self"
