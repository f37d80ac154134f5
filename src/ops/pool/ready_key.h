/* SPDX-License-Identifier: Apache-2.0 */
/* The pool key: what a ready sandbox and its claimer must have in common (store/ready.h). */
#pragma once

#include "ops/cay.h"
#include "store/ready.h"

/*
 * warden: path of the program, with cay-init beside it. config: the warden's settings. top: topmost
 * layer, or empty. 1; 0: such sandboxes cannot be made in advance; or -errno.
 */
int ready_key(const struct state *s, const char *warden, const struct cay_config *config,
	      struct str recipe, const char *top, char ret[READY_KEY]);
/*
 * The fields of a recipe that an owner chooses (late), or the fields that say what to build.
 * Returns 0 or -errno.
 */
int ready_split(struct str recipe, bool late, struct buf *ret);
