/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of which kinds how many sandboxes are to be kept ready: rows of the catalog. Not to be confused
 * with store/pool.h, the btrfs that sandboxes write to.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "store/catalog.h"
#include "store/warm.h"

struct pool_row {
	char template_[256];	/* as it was given */
	char options[1024];	/* likewise, in an order of their own; empty: none */
	char snapshot[ID_SIZE]; /* that template_ stood for; empty: it is no snapshot */
	struct buf recipe;	/* what is built; of a template without the template's own mounts */
	uint32_t wanted;
	uint64_t claimed;   /* of kinds that it had before */
	char key[WARM_KEY]; /* its kind, as the keeper found it last; empty: not yet */
	char problem[320];  /* why there are not as many as wanted; empty: none */
};

#define POOL_ROW_INIT \
	{ \
		.recipe = BUF_INIT(LIMIT_FRAME_BODY) \
	}

void pool_row_done(struct pool_row *p);

/* Add, or change what template and options say. */
int catalog_put_pool(struct catalog *c, const struct pool_row *p, struct err *e);
/* options NULL: all of the template. *ret_n counts. */
int catalog_del_pools(struct catalog *c, const char *template_, const char *options, int *ret_n,
		      struct err *e);
/* In the order of their names; fn as in catalog_each(). */
int catalog_each_pool(struct catalog *c, int (*fn)(void *ctx, const struct pool_row *p), void *ctx,
		      struct err *e);
/* What the keeper found: key, claimed, problem. No error where it is gone. */
int catalog_note_pool(struct catalog *c, const struct pool_row *p, struct err *e);

/*
 * A sandbox without a row keeps these layers. CONFLICT where one of them is gone. They are let go
 * of by catalog_del_sandbox().
 */
int catalog_hold_layers(struct catalog *c, const char *id, char (*layers)[ID_SIZE], size_t n,
			struct err *e);
/* CONFLICT with sys EADDRINUSE where a row has this range of uids. */
int catalog_check_slot(struct catalog *c, int slot, struct err *e);
