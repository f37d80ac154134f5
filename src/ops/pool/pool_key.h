/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of store/pools.h means now: the template may have changed since it was written. */
#pragma once

#include "ops/cay.h"
#include "store/pools.h"

struct pool_key {
	struct buf recipe; /* what is built */
	char top[ID_SIZE];
	char key[WARM_KEY];
};

#define POOL_KEY_INIT \
	{ \
		.recipe = BUF_INIT(LIMIT_FRAME_BODY) \
	}

/* NOT_FOUND where its template is gone, INVALID where none of the kind can be made ahead. */
int pool_key_find(struct cay *s, const struct pool_row *row, struct pool_key *ret, struct err *e);
void pool_key_done(struct pool_key *k);
DEFINE_AUTO(struct pool_key, pool_key_done)
DEFINE_AUTO(struct pool_row, pool_row_done)

/* The part of a recipe that a row keeps: without what comes from the template. 0 or -errno. */
int pool_key_keep(struct str recipe, bool of_snapshot, struct buf *ret);
/* INVALID, with the reason why none of such a kind can be made ahead. */
int pool_key_refuse(struct err *e);
