/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/net_options.h"

#include <string.h>

#include "cli/policy/policy_load.h"

int net_opts_spec(const struct net_opts *n, struct buf *policy, struct net_spec *ret, struct err *e)
{
	struct policy_source s = { .net = n->net, .allow = &n->allow, .deny = &n->deny };

	*ret = (struct net_spec){ .preset = n->net,
				  .allow = { n->allow.items, n->allow.n },
				  .deny = { n->deny.items, n->deny.n } };
	if (!n->allow.n && (!n->net || strcmp(n->net, "none") == 0)) {
		if (n->deny.n)
			return err_set(e, ERR_INVALID,
				       "--deny without --net or --allow: there is no "
				       "network that it could be kept from");
		return 0;
	}
	if (policy_load(&s, policy, NULL, e) < 0)
		return -1;
	ret->policy = buf_str(policy);
	return 0;
}
