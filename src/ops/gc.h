/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what dead sandboxes left behind. */
#pragma once

#include "ops/cay.h"

struct gc_spec {
	bool lost; /* also remove lost sandboxes with their files */
	/* Called for each lost sandbox that could not be removed; or NULL. */
	void (*failed)(void *ctx, const struct err *e);
	void *ctx;
};

struct gc_result {
	int removed, lost_removed, lost_kept, layers, bases;
	uint64_t bytes; /* freed */
};

/* Continues after a failure and returns the first one. Always fills ret. */
int op_gc(struct cay *c, const struct gc_spec *spec, struct gc_result *ret, struct err *e);
