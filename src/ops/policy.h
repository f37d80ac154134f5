/* SPDX-License-Identifier: Apache-2.0 */
/* Network policies: compiled from what was given, and given to sandboxes. */
#pragma once

#include "ops/cay.h"
#include "ops/create/create_spec.h"
#include "policy/policy.h"

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
/* Another policy for a living sandbox and its forks; *ret_cut: connections that it ended. */
int op_policy_set(struct cay *c, const char *ref, struct str compiled, uint64_t *ret_cut,
		  struct err *e);
