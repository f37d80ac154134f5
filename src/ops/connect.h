/* SPDX-License-Identifier: Apache-2.0 */
/* From what a person or a program calls a sandbox to a link to its warden. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

/* A link on c->loop; the caller frees it before c. A whole id of a living sandbox needs no catalog.
 */
int op_connect(struct cay *c, const char *ref, struct link **ret, struct err *e);
