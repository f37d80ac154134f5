/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of its own for all sandboxes of a server, so that the server's unit can be restarted
 * while they live. One process settles in it; workers of the server join it. Version 2 only.
 */
#pragma once

#include <stddef.h>

/* Move into the leaf of our own group (CGROUP_SELF), and write the group's path. 0 or -errno. */
int cgroup_settle(char *ret_path, size_t size);
/* Move into the leaf of the group that another process settled in. 0 or -errno. */
int cgroup_join(const char *path);
