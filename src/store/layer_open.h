/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed layers are below layers/ of the state directory, or of the storage if the sandbox that
 * made them had its files there. Readers search both.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>

struct layer_roots {
	int state_fd;
	int storage_fd; /* FD_NONE: no storage */
};

/*
 * path: ID, ID/N or below; follows no symbolic link. Returns a descriptor or -errno: -ENOENT if the
 * layer does not have that name, -LAYER_GONE if the layer itself is in neither place. Callers must
 * not continue without a missing layer, because that would show different files.
 */
enum { LAYER_GONE = ENOMEDIUM };
int layer_open(const struct layer_roots *r, const char *path, int flags);

/*
 * A layer whose id begins with '0' is a frozen start (store/starts.h). Its content of a mount
 * replaces all lowers of that mount, wherever the start is in the stack; the topmost start counts.
 */
static inline bool layer_is_start(const char *id)
{
	return id[0] == '0';
}
/* Opens mount i of a start; -ENOENT also for a layer that is not a start. */
int layer_open_start(const struct layer_roots *r, const char *id, int i, int flags);
