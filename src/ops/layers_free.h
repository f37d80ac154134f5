/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed layers that nothing refers to any more, and how large layers are. */
#pragma once

#include "store/catalog.h"

/*
 * The lock for removing and flattening layers. wait: until it is free; otherwise -1 with CONFLICT
 * if it is held. The caller closes *ret_fd.
 */
int layers_lock(const struct state *s, bool wait, int *ret_fd, struct err *e);
/*
 * With the lock: delete the rows of layers that nothing refers to, and their files. Also remove
 * entries below layers/ that have neither a row nor an operation. *ret_n is their number,
 * *ret_bytes their size; both may be NULL, then sizes are not computed.
 */
int layers_free(struct catalog *c, const struct state *s, int *ret_n, uint64_t *ret_bytes,
		struct err *e);
/* The same if the lock is free; otherwise a later call does it. */
void layers_free_soon(struct catalog *c, const struct state *s);

/* Blocks in use below a directory; each name of a file counts for its share. */
uint64_t layers_disk_usage(int parent, const char *name);
/* The cost of copying a layer, roughly in bytes. */
uint64_t layers_copy_cost(int layer);
