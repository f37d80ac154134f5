/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles network policies and sets them on sandboxes. */
#pragma once

#include "ops/cay.h"
#include "ops/create/create_spec.h"
#include "ops/policy_record.h"

struct policy_spec {
	const char *preset; /* none, coding, research, open; NULL: none */
	/* Or a document that the front end has read. */
	const char
		*file; /* its name, for messages; the suffix .json means JSON; NULL: no document */
	struct str text;
	struct text_list allow, deny; /* HOST[:PORT], in addition */
};

/*
 * Writes the compiled form for a gateway, at most LIMIT_POLICY, into *ret_compiled (BUF_INIT by the
 * caller). If ret is not NULL, also returns it decoded. Errors name the file, line and column.
 */
int op_policy_compile(const struct policy_spec *spec, struct buf *ret_compiled, struct policy **ret,
		      struct err *e);

/* What a new policy changed. Arrays of rules as texts (policy/describe.h). */
struct policy_set_result {
	uint64_t cut; /* connections that it closed */
	json_t *added, *removed;
	json_t *dropped; /* targets of removed rules that were given with --allow or --deny */
};

/* Replace the whole policy of a running sandbox and of its future forks. */
int op_policy_set(struct cay *c, const char *ref, struct str compiled,
		  struct policy_set_result *ret, struct err *e);
void policy_set_result_done(struct policy_set_result *r);
DEFINE_AUTO(struct policy_set_result, policy_set_result_done)
void json_policy_set(struct json *j, const struct policy_set_result *r);
