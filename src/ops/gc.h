/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what dead sandboxes have left behind. */
#pragma once

#include "ops/cay.h"

struct gc_spec {
	bool lost; /* also lost sandboxes, with what is in them */
	/* For each lost one that could not be removed; or NULL. */
	void (*failed)(void *ctx, const struct err *e);
	void *ctx;
};

struct gc_result {
	int removed, lost_removed, lost_kept, layers, bases;
	uint64_t bytes; /* freed */
};

/* Goes on after a failure, and tells the first one: ret is filled in any case. */
int op_gc(struct cay *c, const struct gc_spec *spec, struct gc_result *ret, struct err *e);
