/* SPDX-License-Identifier: Apache-2.0 */
/* Put right what dead sandboxes left. */
#pragma once

#include "store/catalog.h"

/*
 * Check up to `most` sandboxes (0: all) and directories. A dead sandbox becomes `lost`; an
 * ephemeral or unfinished one is removed, and so are directories without a row. *ret_removed counts
 * the removals (may be NULL). Never touches a running sandbox. A bounded check starts at a random
 * place, so that many of them cover everything. Continues after a failure and returns the first
 * one.
 */
int reconcile_all(struct catalog *c, const struct state *s, int most, int *ret_removed,
		  struct err *e);
int reconcile_one(struct catalog *c, const struct state *s, const char *id, struct err *e);
