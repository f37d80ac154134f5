/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remaining control groups of a dead sandbox: cay-ID and its children, below this process's own
 * group in the v2 and v1 hierarchies.
 */
#pragma once

/*
 * A descriptor of this process's own v2 group, for the functions below. -ENOENT if there is none
 * that we can use; then we made no groups below it either.
 */
int groups_open(void);
/* Kill the processes in the sandbox's group if the kernel can (5.14). 0 or -errno. */
int groups_kill(int own, const char *id);
/*
 * Remove the group; waits up to 200 ms for the last processes to end. own may be negative: then
 * only the v1 hierarchies. 0 or -errno.
 */
int groups_remove(int own, const char *id);
