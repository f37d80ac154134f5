/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/connect.h"

int op_connect(struct cay *c, const char *ref, struct link **ret, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	if (state_id_ok(ref) && link_connect(&c->wait, &c->state, ref, ret, &ignored) == 0)
		return 0;
	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &row, e) < 0)
		return -1;
	return link_connect(&c->wait, &c->state, row.id, ret, e);
}
