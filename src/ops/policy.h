/* SPDX-License-Identifier: Apache-2.0 */
/* Network policies: compiled from what was given, and given to sandboxes. */
#pragma once

#include "ops/cay.h"
#include "ops/create/create_spec.h"
#include "ops/policy_record.h"

struct policy_spec {
	const char *preset; /* none, coding, research, open; NULL: none */
	/* Or a document, which the front has read. */
	const char
		*file; /* its name, for messages and its format: .json is JSON; NULL: no document */
	struct str text;
	struct text_list allow, deny; /* HOST[:PORT] beside it */
};

/*
 * The compiled form for a gateway, at most LIMIT_POLICY, into *ret_compiled (BUF_INIT by the
 * caller) and, where ret is not NULL, the same decoded. Errors name the file, line and column.
 */
int op_policy_compile(const struct policy_spec *spec, struct buf *ret_compiled, struct policy **ret,
		      struct err *e);

/* What another policy changed. Arrays of rules as texts (policy/describe.h). */
struct policy_set_result {
	uint64_t cut; /* connections that it ended */
	json_t *added, *removed;
	json_t *dropped; /* of the removed rules the targets that were given with --allow, --deny */
};

/* Another policy for a living sandbox and its forks, in the place of the whole last one. */
int op_policy_set(struct cay *c, const char *ref, struct str compiled,
		  struct policy_set_result *ret, struct err *e);
void policy_set_result_done(struct policy_set_result *r);
DEFINE_AUTO(struct policy_set_result, policy_set_result_done)
void json_policy_set(struct json *j, const struct policy_set_result *r);
