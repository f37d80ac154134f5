/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: one process per state directory that makes ready sandboxes (store/ready.h) until
 * there are as many as the rows of store/pools.h want, and removes those no longer wanted.
 *
 * The lock ready/lock keeps it single. Nothing depends on it: ready sandboxes can be claimed while
 * it is dead, and the next cay that could have used one starts it again. It makes one sandbox at a
 * time, waits until a burst of claims is over, and pauses as long as each sandbox took, so that it
 * never uses more than half of one CPU. It ends when nothing is wanted.
 */
#pragma once

#include "ops/cay.h"

/*
 * Be the keeper until nothing is wanted or another keeper runs. *ret_replaced: a newer program
 * replaced ours, and the caller should run that instead.
 */
int op_pool_keep(struct cay *c, bool *ret_replaced, struct err *e);
