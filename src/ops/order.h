/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to a running sandbox: pause, resume, extend. */
#pragma once

#include "link/wait.h"
#include "ops/cay.h"

struct order_spec {
	const char *ref;
	enum link_order order;
	uint64_t ms; /* EXTEND: the time to live; EXPIRE_AT: wall-clock time; 0: no end */
};

struct order_result {
	char id[ID_SIZE];
	struct sandbox_status state; /* state after the order */
};

int op_order(struct cay *c, const struct order_spec *spec, struct order_result *ret, struct err *e);
