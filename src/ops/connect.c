/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/connect.h"

#include "link/client.h"

int op_connect(struct cay *c, const char *ref, int *ret_fd, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	if (state_id_ok(ref) && client_connect(&c->state, ref, ret_fd, &ignored) == 0)
		return 0;
	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &row, e) < 0)
		return -1;
	return client_connect(&c->state, row.id, ret_fd, e);
}
