/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of layers stay shallow: what is too deep is merged (ops/flatten_layers.h). */
#pragma once

#include "ops/cay.h"

/* Merge what is too deep. wait: until another who does so is done; else leave it to that one. */
int op_flatten(struct cay *c, bool wait, struct err *e);
/* Before a layer is added to a stack: at once where it must be, else in the background, later. */
int flatten_before(struct cay *c, size_t depth, struct err *e);
