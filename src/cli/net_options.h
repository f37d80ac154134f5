/* SPDX-License-Identifier: Apache-2.0 */
/* Options that give a sandbox a network: rows, the policy made of them, and what is sent. */
#pragma once

#include "base/buf.h"
#include "cli/cmd.h"
#include "cli/output.h"

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

/* The compiled policy, empty for no network. Errors name the file, line and column. */
int net_opts_resolve(const struct net_opts *n, struct buf *ret_policy, struct err *e);
/* The field of a recipe: the policy. 0 or -errno. */
int net_opts_put_build(const struct buf *policy, struct buf *b);
/*
 * Fields of MSG_C_BUILD for a recipe that has a policy: how this host resolves names and dials,
 * just now. They are no part of the recipe, which is kept: a proxy's address may have a password in
 * it.
 */
int net_opts_put_host(struct str recipe, struct buf *b, struct err *e);
/* "net", "allow" and "deny" in the spec of a sandbox; nothing for none. */
void net_opts_spec(const struct net_opts *n, struct out_json *j);
