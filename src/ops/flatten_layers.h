/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flatten deep stacks: merge a run of adjacent layers of one level into one layer of the next
 * level, and redirect references from the top of the run to it. The visible files stay the same.
 * The old layers stay as long as a snapshot between them or a sandbox that has them mounted needs
 * them. With runs of eight, each file is copied once per level, and a stack of n layers is about 8
 * + 7 log8(n) deep. If the lowest layer of a run is eight times as large as all above it, it is not
 * copied, but only moved to the next level.
 */
#pragma once

#include "store/catalog.h"

enum { FLATTEN_RUN = 8, FLATTEN_SPARE = 4, FLATTEN_FROM = FLATTEN_RUN + FLATTEN_SPARE };

/*
 * Flatten one run of the stack under `top`, with layers_lock() held. sandbox: one whose recipe says
 * what is below. 1: merged or moved to the next level. 0: nothing to do.
 */
int flatten_once(struct catalog *c, const struct state *s, const char *top, const char *sandbox,
		 struct err *e);
/*
 * Flatten all stacks of sandboxes until none has such a run. Then free layers that nothing needs.
 */
int flatten_all(struct catalog *c, const struct state *s, struct err *e);
