/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sandboxes. */
#pragma once

#include "link/client_many.h"
#include "ops/cay.h"
#include "ops/create/create_spec.h"

struct sandbox_list {
	struct sandbox_row *rows;
	int n;
};

/* Every sandbox, oldest first. */
int sandbox_list_load(struct sandbox_list *l, struct cay *c, struct err *e);
/* Append the sandbox that ref names, where the list does not hold it already. */
int sandbox_list_find(struct sandbox_list *l, struct cay *c, const char *ref, struct err *e);
void sandbox_list_done(struct sandbox_list *l);
DEFINE_AUTO(struct sandbox_list, sandbox_list_done)

struct list_spec {
	bool lost;		 /* also those whose warden is gone */
	struct text_list labels; /* only sandboxes that have each: k=v, or k */
	bool ids_only;		 /* wardens are not asked */
};

struct list_result {
	struct sandbox_list sandboxes;
	struct client_question *asked; /* as many: what each warden said; of ids_only NULL */
	int lost;		       /* so many were left out for that */
};

/*
 * What the dead left is put right first. All wardens are asked side by side; one that does not
 * answer within 200 ms is listed without its numbers.
 */
int op_list(struct cay *c, const struct list_spec *spec, struct list_result *ret, struct err *e);
void list_result_done(struct list_result *r);
DEFINE_AUTO(struct list_result, list_result_done)
