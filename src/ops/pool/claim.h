/* SPDX-License-Identifier: Apache-2.0 */
/* Claims a ready sandbox (store/ready.h) instead of building one. */
#pragma once

#include "ops/create/creation.h"

/*
 * The n creations have a recipe and a row and nothing else; all are of one kind. Turns as many as
 * possible into claimed sandboxes (FROM_POOL) and returns their number; 0 if none of this kind is
 * ready, for any reason.
 */
size_t claim(struct creation *ns, size_t n, const char *hostname);
/* The warden has ended: take its lock, which we did not hold before. */
int claim_lock(struct creation *n, struct err *e);
