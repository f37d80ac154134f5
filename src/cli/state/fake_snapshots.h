/* SPDX-License-Identifier: Apache-2.0 */
/* For fake_store.h: a store without layers and snapshots. */
#pragma once

#include "ops/flatten_layers.h"
#include "ops/layers_free.h"
#include "store/snapshots.h"
#include "t.h"

void snapshot_row_done(struct snapshot_row *row)
{
	(void)row;
}

void operation_row_done(struct operation_row *row)
{
	(void)row;
}

int catalog_find_snapshot(struct catalog *c, const char *ref, struct snapshot_row *ret,
			  struct err *e)
{
	(void)c;
	(void)ret;
	return err_set(e, ERR_NOT_FOUND, "no snapshot '%s'", ref);
}

int catalog_last_snapshot(struct catalog *c, const char *sandbox, enum snapshot_kind kind,
			  struct snapshot_row *ret, struct err *e)
{
	(void)c;
	(void)sandbox;
	(void)kind;
	(void)ret;
	(void)e;
	return 0;
}

int catalog_each_snapshot(struct catalog *c, const char *sandbox,
			  int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx,
			  struct err *e)
{
	(void)c;
	(void)sandbox;
	(void)fn;
	(void)ctx;
	(void)e;
	return 0;
}

static inline int fake_none(struct err *e)
{
	return err_set(e, ERR_FAILED, "the fake store keeps no snapshots");
}

int catalog_del_snapshot(struct catalog *c, const char *id, struct err *e)
{
	(void)c;
	(void)id;
	return fake_none(e);
}

int catalog_recipe(struct catalog *c, const char *sandbox, struct buf *ret, struct err *e)
{
	(void)c;
	(void)sandbox;
	(void)ret;
	return fake_none(e);
}

int catalog_recipes_hold(struct catalog *c, const char *text, struct err *e)
{
	(void)c;
	(void)text;
	(void)e;
	return 1;
}

int catalog_recipe_row(struct catalog *c, const char *sandbox, struct buf *ret,
		       struct sandbox_row *row, struct err *e)
{
	(void)row;
	return catalog_recipe(c, sandbox, ret, e);
}

int catalog_get_snapshot(struct catalog *c, const char *id, struct snapshot_row *ret, struct err *e)
{
	(void)c;
	(void)id;
	(void)ret;
	(void)e;
	return 0;
}

int catalog_stack(struct catalog *c, const char *top, char (**ret)[ID_SIZE], size_t *ret_n,
		  struct err *e)
{
	(void)c;
	(void)top;
	(void)ret;
	(void)ret_n;
	return fake_none(e);
}

int catalog_top(struct catalog *c, const char *id, char ret[ID_SIZE], struct err *e)
{
	(void)c;
	(void)id;
	(void)ret;
	return fake_none(e);
}

int catalog_sync(struct catalog *c, struct err *e)
{
	(void)c;
	return fake_none(e);
}

int catalog_op_begin(struct catalog *c, const struct operation_row *op, struct err *e)
{
	(void)c;
	(void)op;
	return fake_none(e);
}

int catalog_op_find(struct catalog *c, const char *sandbox, struct operation_row *ret,
		    struct err *e)
{
	(void)c;
	(void)sandbox;
	(void)ret;
	return fake_none(e);
}

int catalog_op_cancel(struct catalog *c, const char *sandbox, struct err *e)
{
	(void)c;
	(void)sandbox;
	return fake_none(e);
}

int catalog_op_done(struct catalog *c, const struct operation_row *op, enum op_result result,
		    const char *below, struct err *e)
{
	(void)c;
	(void)op;
	(void)result;
	(void)below;
	return fake_none(e);
}

int layers_lock(const struct state *s, bool wait, int *ret_fd, struct err *e)
{
	(void)s;
	(void)wait;
	*ret_fd = -1;
	(void)e;
	return 0;
}

int layers_free(struct catalog *c, const struct state *s, int *ret_n, uint64_t *ret_bytes,
		struct err *e)
{
	(void)c;
	(void)s;
	(void)e;
	*ret_n = 0;
	*ret_bytes = 0;
	return 0;
}

void layers_free_soon(struct catalog *c, const struct state *s)
{
	(void)c;
	(void)s;
}

int flatten_all(struct catalog *c, const struct state *s, struct err *e)
{
	(void)c;
	(void)s;
	(void)e;
	return 0;
}
