/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that stay. For one that ends with its creator: ops/create/creation.h. */
#pragma once

#include "ops/cay.h"
#include "ops/create/create_spec.h"

enum { CREATE_MOST = 64 }; /* at once */

struct created {
	char id[ID_SIZE], name[64], template_[256];
	char top[ID_SIZE]; /* the layer that it starts from; empty: none */
	uint64_t created_ns, start_us;
	bool claimed; /* it was ready before it was asked for */
	struct warnings warnings;
};

struct creation;
/* What a creation has come to. */
void created_fill(struct created *ret, const struct creation *n);
/*
 * n sandboxes; they run and stay when this returns, or there is none of them. Their rows are
 * written together.
 */
int op_create(struct cay *c, const struct create_spec *specs, size_t n, struct created *ret,
	      struct err *e);
