/* SPDX-License-Identifier: Apache-2.0 */
/* Claiming a ready sandbox (store/warm.h) instead of building one. */
#pragma once

#include "ops/create/creation.h"

/*
 * Each of the n has its recipe and row, and nothing else yet; all are of one kind. Those that are
 * FROM_POOL afterwards are sandboxes that were ready and are their own now: how many, which is 0
 * where there are none of this kind, for whatever reason.
 */
size_t claim(struct creation *ns, size_t n, const char *hostname);
/* Its warden has ended: take the lock, which was never ours. */
int claim_lock(struct creation *n, struct err *e);
