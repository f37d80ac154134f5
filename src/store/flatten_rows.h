/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that flattening reads and changes. ops/flatten_layers.c makes the files. */
#pragma once

#include "store/catalog.h"

/*
 * At most `max` layers of the stack under `top`, topmost first, and how often each was merged.
 * *ret_n: how many there are.
 */
int catalog_levels(struct catalog *c, const char *top, char (*ids)[ID_SIZE], int *levels, int max,
		   int *ret_n, struct err *e);
/*
 * Put the layer `id` of this level above `below` (NULL: nothing) in the place of n adjacent layers,
 * topmost first. Sandboxes that have those mounted keep them pinned until their next switch. 1:
 * done. 0: a switch in progress has been given those layers, so nothing was changed.
 */
int catalog_replace_layers(struct catalog *c, char (*old)[ID_SIZE], int n, const char *below,
			   const char *id, int level, struct err *e);
/* Move a layer to the next level. */
int catalog_raise_layer(struct catalog *c, const char *id, struct err *e);
/*
 * Tops of stacks that end in a sandbox or snapshot, each followed by a sandbox with its recipe; the
 * caller frees *ret.
 */
int catalog_tops(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e);
