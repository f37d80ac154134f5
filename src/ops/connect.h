/* SPDX-License-Identifier: Apache-2.0 */
/* From what a person or a program calls a sandbox to a connection to its warden. */
#pragma once

#include "ops/cay.h"

/* A connection that has said hello; the caller owns it. A whole id of a living sandbox needs no
 * catalog. */
int op_connect(struct cay *c, const char *ref, int *ret_fd, struct err *e);
