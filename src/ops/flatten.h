/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps stacks of layers shallow: merges layers of deep stacks (ops/flatten_layers.h). */
#pragma once

#include "ops/cay.h"

/*
 * Merge layers of deep stacks. wait: wait for another process that does so; otherwise leave the
 * work to it.
 */
int op_flatten(struct cay *c, bool wait, struct err *e);
/*
 * Call before adding a layer. Merges now if the stack is full, or later in the background if it is
 * deep.
 */
int flatten_before(struct cay *c, size_t depth, struct err *e);
