/* SPDX-License-Identifier: Apache-2.0 */
/* Creates sandboxes that stay. For a sandbox that ends with its creator: ops/create/creation.h. */
#pragma once

#include "ops/cay.h"
#include "ops/create/create_spec.h"

enum { CREATE_MOST = 64 }; /* sandboxes per request */

struct created {
	char id[ID_SIZE], name[64], template_[256];
	char top[ID_SIZE]; /* topmost layer that it starts from; empty: none */
	uint64_t created_ns, start_us;
	bool claimed; /* it came from a pool */
	struct warnings warnings;
};

struct creation;
/* Fill ret from a finished creation. */
void created_fill(struct created *ret, const struct creation *n);
/*
 * Creates n sandboxes, or none on failure. They run and stay when this returns. Their rows are
 * written in one commit.
 */
int op_create(struct cay *c, const struct create_spec *specs, size_t n, struct created *ret,
	      struct err *e);
