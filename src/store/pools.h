/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: how many ready sandboxes to keep for each template and options, as rows of the catalog.
 * Not to be confused with store/storage.h, the storage.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "store/catalog.h"
#include "store/ready.h"

struct pool_row {
	char template_[256];	/* as the user gave it */
	char options[1024];	/* as the user gave them, in canonical order; empty: none */
	char snapshot[ID_SIZE]; /* the snapshot that template_ meant; empty: not a snapshot */
	struct buf recipe; /* what to build; for a template without the template's own mounts */
	uint32_t wanted;
	uint64_t claimed;    /* claims of earlier pool keys */
	char key[READY_KEY]; /* pool key that the keeper last found; empty: not yet */
	char problem[320];   /* why fewer than wanted are ready; empty: none */
};

#define POOL_ROW_INIT \
	{ \
		.recipe = BUF_INIT(LIMIT_FRAME_BODY) \
	}

void pool_row_done(struct pool_row *p);

/* Add a row, or change the one with this template and options. */
int catalog_put_pool(struct catalog *c, const struct pool_row *p, struct err *e);
/* options NULL: all rows of the template. *ret_n counts. */
int catalog_del_pools(struct catalog *c, const char *template_, const char *options, int *ret_n,
		      struct err *e);
/* In the order of their names; fn as in catalog_each(). */
int catalog_each_pool(struct catalog *c, int (*fn)(void *ctx, const struct pool_row *p), void *ctx,
		      struct err *e);
/* Store what the keeper found: key, claimed, problem. No error if the row is gone. */
int catalog_note_pool(struct catalog *c, const struct pool_row *p, struct err *e);

/*
 * Pin these layers for a sandbox without a row. CONFLICT if one of them is gone.
 * catalog_del_sandbox() releases them.
 */
int catalog_hold_layers(struct catalog *c, const char *id, char (*layers)[ID_SIZE], size_t n,
			struct err *e);
/* CONFLICT with sys EADDRINUSE if a row has this range of uids. */
int catalog_check_slot(struct catalog *c, int slot, struct err *e);
