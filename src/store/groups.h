/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leftover control groups of a dead sandbox: cay-ID and what lies below it, in the cgroup v2
 * tree under this process's own group.
 */
#pragma once

/*
 * This process's own group as a descriptor, for the two below. -ENOENT where there is none that
 * we can enter, and so none below it that we made.
 */
int groups_open(void);
/* Kill what is in the sandbox's group, where the kernel can (5.14). 0 or -errno. */
int groups_kill(int own, const char *id);
/* Remove it, waiting up to 200 ms for the last processes to go. 0 or -errno. */
int groups_remove(int own, const char *id);
