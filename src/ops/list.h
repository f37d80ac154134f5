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
/* Append the sandbox that ref names, unless the list already has it. */
int sandbox_list_find(struct sandbox_list *l, struct cay *c, const char *ref, struct err *e);
void sandbox_list_done(struct sandbox_list *l);
DEFINE_AUTO(struct sandbox_list, sandbox_list_done)

struct list_spec {
	bool lost;		 /* include sandboxes whose warden is gone */
	struct text_list labels; /* only sandboxes with every label: k=v, or k */
	bool ids_only;		 /* do not ask the wardens */
};

struct list_result {
	struct sandbox_list sandboxes;
	struct client_question *asked; /* same length: replies of the wardens; NULL with ids_only */
	int lost;		       /* number of lost sandboxes left out */
};

/*
 * Reconciles dead sandboxes first. Asks all wardens in parallel; a sandbox whose warden does not
 * answer within 200 ms is listed without numbers.
 */
int op_list(struct cay *c, const struct list_spec *spec, struct list_result *ret, struct err *e);
void list_result_done(struct list_result *r);
DEFINE_AUTO(struct list_result, list_result_done)
