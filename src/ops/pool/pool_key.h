/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current meaning of a row of store/pools.h: the template may have changed since the row was
 * written.
 */
#pragma once

#include "ops/cay.h"
#include "store/pools.h"

struct pool_key {
	struct buf recipe; /* recipe to build */
	char top[ID_SIZE];
	char key[READY_KEY];
};

#define POOL_KEY_INIT \
	{ \
		.recipe = BUF_INIT(LIMIT_FRAME_BODY) \
	}

/*
 * NOT_FOUND if its template is gone; INVALID if sandboxes of this kind cannot be made in advance.
 */
int pool_key_find(struct cay *s, const struct pool_row *row, struct pool_key *ret, struct err *e);
void pool_key_done(struct pool_key *k);
DEFINE_AUTO(struct pool_key, pool_key_done)
DEFINE_AUTO(struct pool_row, pool_row_done)

/* The part of a recipe that a row stores: without the template's fields. Returns 0 or -errno. */
int pool_key_keep(struct str recipe, bool of_snapshot, struct buf *ret);
