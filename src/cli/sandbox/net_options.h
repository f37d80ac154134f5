/* SPDX-License-Identifier: Apache-2.0 */
/* Network options of a sandbox: their rows, and the policy made from them. */
#pragma once

#include "base/buf.h"
#include "cli/cmd.h"
#include "ops/create/create_spec.h"

struct net_opts {
	const char *net;
	struct opt_list allow, deny;
};

/* clang-format off */
#define NET_OPTS_BUILD(n) \
	{ "net", 0, OPT_TEXT, "PRESET|FILE", \
	  "Give it a network with this policy: none (default), coding, research, open, or a file " \
	  "such as ./net.yaml", &(n).net }, \
	{ "allow", 0, OPT_LIST, "HOST[:PORT]", \
	  "Let it reach this host (*.example.com, 10.1.2.3:5432); gives it a network", &(n).allow }, \
	{ "deny", 0, OPT_LIST, "HOST[:PORT]", "Keep it from this host, whatever else is allowed", \
	  &(n).deny }
/* clang-format on */

/*
 * Compiles the policy of these options into *policy, which ret borrows. Errors name the file, line
 * and column.
 */
int net_opts_spec(const struct net_opts *n, struct buf *policy, struct net_spec *ret,
		  struct err *e);
