/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: how many sandboxes of a kind to keep ready. */
#pragma once

#include "ops/create/create_check.h"
#include "store/pools.h"

struct pool_spec {
	struct create_spec of; /* the kind, including its template */
	uint32_t wanted; /* 0: remove the pool; without options, remove all pools of its template */
	bool wait;	 /* wait until they are ready */
};

int op_pool_set(struct cay *c, const struct pool_spec *spec, struct err *e);

struct pool_item {
	const struct pool_row *row; /* borrowed until fn returns */
	size_t ready;
	uint64_t claimed;
	const char *problem; /* or NULL */
};

/* *ret_keeper: pid of the keeper; 0 if none runs, and then one is started. */
int op_pool_list(struct cay *c, int (*fn)(void *ctx, const struct pool_item *item), void *ctx,
		 long *ret_keeper, struct err *e);
