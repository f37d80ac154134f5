/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a sandbox: those that run, and the last ones that ended. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

/* fn returns non-zero to stop. In the order of their numbers, but detached ones last. */
int op_calls(struct cay *c, const char *ref, int (*fn)(void *ctx, const struct link_call_row *r),
	     void *ctx, struct err *e);
/* running, exit, failed, or the reason why it ended. */
const char *call_state(const struct link_call_row *r);
