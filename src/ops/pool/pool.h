/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: how many sandboxes of a kind are to be ready before they are asked for. */
#pragma once

#include "ops/create/create_check.h"
#include "store/pools.h"

struct pool_spec {
	struct create_spec of; /* the kind; its template too */
	uint32_t wanted;       /* 0: none any more; of a spec without options all of its template */
	bool wait;	       /* return when they are ready */
};

int op_pool_set(struct cay *c, const struct pool_spec *spec, struct err *e);

struct pool_item {
	const struct pool_row *row; /* borrowed, for as long as fn runs */
	size_t ready;
	uint64_t claimed;
	const char *problem; /* or NULL */
};

/* *ret_keeper: its pid, 0 where it does not run; then it is started again. */
int op_pool_list(struct cay *c, int (*fn)(void *ctx, const struct pool_item *item), void *ctx,
		 long *ret_keeper, struct err *e);
