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

#include "ops/cay.h"

/*
 * Be the keeper, until nothing is wanted or another one is. *ret_replaced: a newer program lies in
 * our place, and is to be run instead.
 */
int op_pool_keep(struct cay *c, bool *ret_replaced, struct err *e);
