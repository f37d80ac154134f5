/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a sandbox: running calls and the most recent ended calls. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

/* fn returns non-zero to stop. Ordered by call number, with detached calls last. */
int op_calls(struct cay *c, const char *ref, int (*fn)(void *ctx, const struct link_call_row *r),
	     void *ctx, struct err *e);
