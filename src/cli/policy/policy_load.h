/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a policy from --net, --allow and --deny. */
#pragma once

#include "cli/cmd.h"
#include "policy/policy.h"

struct policy_source {
	const char *net; /* name of a preset, or of a file (contains '/' or '.'); NULL: none */
	const struct opt_list *allow, *deny; /* or NULL */
};

/*
 * Writes the compiled form for a gateway, at most LIMIT_POLICY, into *ret_compiled (BUF_INIT by the
 * caller). If ret is not NULL, also returns it decoded. Files ending in .json are JSON.
 */
int policy_load(const struct policy_source *s, struct buf *ret_compiled, struct policy **ret,
		struct err *e);
