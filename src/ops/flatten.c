/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/flatten.h"

#include "base/limits.h"
#include "ops/flatten_layers.h"
#include "ops/layers_free.h"
#include "store/snapshots.h"

enum { URGENT = LIMIT_LAYERS - 2 };

int op_flatten(struct cay *c, bool wait, struct err *e)
{
	auto_close int lock = FD_NONE;

	if (cay_catalog(c, e) < 0)
		return -1;
	if (layers_lock(&c->state, wait, &lock, e) < 0)
		return wait ? -1 : 0;
	return flatten_all(c->catalog, &c->state, e);
}

int flatten_before(struct cay *c, size_t depth, struct err *e)
{
	if (depth >= URGENT)
		return op_flatten(c, true, e);
	if (depth >= FLATTEN_FROM && depth % FLATTEN_SPARE == 0)
		c->after |= AFTER_FLATTEN;
	return 0;
}
