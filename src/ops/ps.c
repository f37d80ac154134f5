/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/ps.h"

int op_ps(struct cay *c, const char *ref, int (*fn)(void *ctx, const struct link_process *p),
	  void *ctx, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(link_free) struct link *l = NULL;

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &row, e) < 0 ||
	    link_connect(&c->wait, &c->state, row.id, &l, e) < 0)
		return -1;
	return link_ps(l, &c->wait, fn, ctx, e);
}
