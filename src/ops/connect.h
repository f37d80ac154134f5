/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a sandbox reference and connects to its warden. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

/*
 * Returns a link on c->loop; the caller frees it before c. A complete id of a running sandbox needs
 * no catalog.
 */
int op_connect(struct cay *c, const char *ref, struct link **ret, struct err *e);
