/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leftover control groups of a dead sandbox: cay-ID and what lies below it, under this
 * process's own group of the v2 hierarchy and of the v1 hierarchies.
 */
#pragma once

/*
 * This process's own v2 group as a descriptor, for the two below. -ENOENT where there is none that
 * we can enter, and so none below it that we made.
 */
int groups_open(void);
/* Kill what is in the sandbox's group, where the kernel can (5.14). 0 or -errno. */
int groups_kill(int own, const char *id);
/*
 * Remove it, waiting up to 200 ms for the last processes to go. own may be negative: then only
 * in the v1 hierarchies. 0 or -errno.
 */
int groups_remove(int own, const char *id);
