/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this process's own control groups lie. A host has one v2 hierarchy, or one v1
 * hierarchy per controller, or both kinds side by side (hybrid).
 *
 * `root` stands before every path, /proc's too: "" on a host, a directory in tests.
 */
#pragma once

#include <stddef.h>

/*
 * Into `out`, the directory of our own group in the v1 hierarchy of `controller`, or with NULL
 * in the v2 hierarchy. -ENOENT where there is no such hierarchy, or it shows another part.
 */
int cgroup_find(const char *root, const char *controller, char *out, size_t size);

/* Below the caller's group, where it steps aside so that its group may have controllers. */
#define CGROUP_SELF "cay-self"
