/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the catalog still needs. ops/layers_free.c removes the files of the others. */
#pragma once

#include "store/catalog.h"

/* Snapshots that only pin layers during forks, which may have been killed; the caller frees *ret.
 */
int catalog_fork_holds(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e);
/* Delete the rows of layers that nothing refers to, and operations without a sandbox. */
int catalog_drop_layers(struct catalog *c, struct err *e);
/* 1: a row, an operation or a snapshot knows the layer, or its maker pins it (store/starts.h). */
int catalog_knows_layer(struct catalog *c, const char *id, struct err *e);
