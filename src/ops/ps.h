/* SPDX-License-Identifier: Apache-2.0 */
/* The processes in a sandbox. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

/* fn returns non-zero to stop. */
int op_ps(struct cay *c, const char *ref, int (*fn)(void *ctx, const struct link_process *p),
	  void *ctx, struct err *e);
