/* SPDX-License-Identifier: Apache-2.0 */
/* From --net, --allow and --deny to a compiled policy. */
#pragma once

#include "cli/cmd.h"
#include "policy/policy.h"

struct policy_source {
	const char *net; /* a preset's name, or a file (with '/' or '.' in it); NULL: none */
	const struct opt_list *allow, *deny; /* or NULL */
};

/*
 * The compiled form for a gateway, at most LIMIT_POLICY, into *ret_compiled (BUF_INIT by the
 * caller) and, where ret is not NULL, the same decoded. Files ending in .json are JSON.
 */
int policy_load(const struct policy_source *s, struct buf *ret_compiled, struct policy **ret,
		struct err *e);
