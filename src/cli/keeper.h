/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: one process per state directory that makes ready sandboxes (store/warm.h) until there
 * are as many as the rows of store/pools.h want, and takes away what they do not want any more.
 *
 * It is single by the lock warm/lock, and nothing depends on it: what is ready can be claimed
 * while it is dead, and the next cay that could have used one starts it again. It makes one at
 * a time, waits until a burst of claims is over, and rests as long as each took, so that it never
 * has more than half of one CPU. It ends when nothing is wanted.
 */
#pragma once

#include "store/state.h"

/* Start it where there is something to keep and nobody who does. */
void keeper_tend(const struct state *s);
/* The same, and where there is one let it look at once: rows have changed. */
void keeper_call(const struct state *s);
