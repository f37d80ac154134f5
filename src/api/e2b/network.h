/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What E2B's clients say about the network of a sandbox, as a policy of ours:
 *
 *   allowOut   names, addresses, ranges    wins over denyOut
 *   denyOut    addresses, ranges           "0.0.0.0/0": no network
 *   else       allow_internet_access
 */
#pragma once

#include "api/fields.h"
#include "base/buf.h"
#include "ops/create/create_spec.h"
#include "store/catalog.h"

/* A sandbox with this label needs the traffic token for its ports; clients do not see the label. */
#define E2B_PRIVATE_KEY	  "cay/traffic"
#define E2B_PRIVATE_LABEL E2B_PRIVATE_KEY "=token"
/* One with this label resumes when it is used. */
#define E2B_RESUME_KEY	 "cay/resume"
#define E2B_RESUME_LABEL E2B_RESUME_KEY "=auto"

struct e2b_network {
	bool internet; /* allow_internet_access; the caller sets the default */
	bool given;    /* rules of its own */
	bool public_traffic;
	const json_t *allow, *deny; /* arrays of texts, borrowed; NULL: none */
};

/*
 * `rules` has allowOut and denyOut; create: also what only a new sandbox can be given. What is not
 * known is INVALID and named.
 */
int e2b_network_read(const json_t *rules, bool create, struct e2b_network *ret, struct err *e);
/* Compiled, into policy (BUF_INIT(LIMIT_POLICY)). */
int e2b_network_compile(const struct e2b_network *n, struct buf *policy, struct err *e);
bool e2b_is_private(const struct sandbox_row *row);
bool e2b_resumes(const struct sandbox_row *row);
