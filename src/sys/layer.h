/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sealed layers lie: below layers/ of the state directory, or of the pool where the sandbox
 * that made them had its files there. Whoever looks for one looks in both.
 */
#pragma once

#include <errno.h>

struct layer_roots {
	int state_fd;
	int pool_fd; /* FD_NONE: no pool */
};

/*
 * path: ID, ID/N or below; no symbolic link is followed. A descriptor or -errno: -ENOENT where the
 * layer has nothing of that name, which is a common thing to say, and -LAYER_GONE where the layer
 * itself is in neither place: to go on without it would show other files than there were.
 */
enum { LAYER_GONE = ENOMEDIUM };
int layer_open(const struct layer_roots *r, const char *path, int flags);
