/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deep stacks are made shallow: a run of neighbouring layers of one level is merged into one of
 * the next level, and whoever referred to the top of the run refers to that. What is seen through
 * it is the same; the layers themselves stay as long as a snapshot between them, or a sandbox that
 * has them mounted, needs them. With runs of eight each file is copied once per level, and a
 * stack of n layers is about 8 + 7 log8(n) deep. The lowest of a run that is eight times as large
 * as all above it is not copied but only counted as of the next level.
 */
#pragma once

#include "store/catalog.h"

enum { FLATTEN_RUN = 8, FLATTEN_SPARE = 4, FLATTEN_FROM = FLATTEN_RUN + FLATTEN_SPARE };

/*
 * One run of the stack under `top`, with layers_lock() held. sandbox: one whose recipe says what
 * lies below. 1: merged, or raised. 0: nothing to do.
 */
int flatten_once(struct catalog *c, const struct state *s, const char *top, const char *sandbox,
		 struct err *e);
/* All stacks of sandboxes, until none has such a run; then layers that nothing needs are freed. */
int flatten_all(struct catalog *c, const struct state *s, struct err *e);
