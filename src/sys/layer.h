/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sealed layers lie: below layers/ of the state directory, or of the pool where the sandbox
 * that made them had its files there. Whoever looks for one looks in both.
 */
#pragma once

struct layer_roots {
	int state_fd;
	int pool_fd; /* FD_NONE: no pool */
};

/* path: ID, ID/N or below; no symbolic link is followed. A descriptor or -errno. */
int layer_open(const struct layer_roots *r, const char *path, int flags);
