/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/calls.h"

#include "ops/connect.h"

int op_calls(struct cay *c, const char *ref, int (*fn)(void *ctx, const struct link_call_row *r),
	     void *ctx, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;

	if (op_connect(c, ref, &l, e) < 0)
		return -1;
	return link_calls(l, &c->wait, 0, fn, ctx, e);
}

const char *call_state(const struct link_call_row *r)
{
	return r->running ? "running" : r->failed ? "failed" : r->result.reason;
}
