/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/order.h"

#include <string.h>

int op_order(struct cay *c, const struct order_spec *spec, struct order_result *ret, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(link_free) struct link *l = NULL;
	struct sandbox_status state;

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, spec->ref, &row, e) < 0 ||
	    link_connect(&c->wait, &c->state, row.id, &l, e) < 0)
		return -1;
	/* A warden of version 2 has no lease and needs none. */
	if (spec->order == LINK_PAUSE && link_lease(l, &c->wait, e) < 0 &&
	    strcmp(e->code, "lease.none") != 0)
		return -1;
	if (link_order(l, &c->wait, spec->order, spec->ms, &state, e) < 0)
		return -1;
	ret->state = state;
	(void)str_copy(ret->id, sizeof ret->id, str_of(row.id));
	return 0;
}
