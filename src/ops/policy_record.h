/* SPDX-License-Identifier: Apache-2.0 */
/* The network policy of a sandbox: the current policy and its history. */
#pragma once

#include <jansson.h>

#include "ops/cay.h"
#include "policy/policy.h"
#include "wire/json_write.h"

struct policy_record {
	char id[ID_SIZE];
	struct policy *now; /* NULL: no network, or the sandbox has ended */
	char hash[65];	    /* of `now` */
	json_t *history;    /* its policy.set events, oldest first; may be NULL */
	bool cut;	    /* the trace no longer has older events */
};

/* ref: a running or ended sandbox. An ended sandbox has only the history. */
int op_policy_record(struct cay *c, const char *ref, struct policy_record *ret, struct err *e);
void policy_record_done(struct policy_record *r);
DEFINE_AUTO(struct policy_record, policy_record_done)
/* Only the current policy: r->now, NULL without a network. */
int policy_record_now(struct cay *c, const char *id, struct policy_record *r, struct err *e);

void json_policy_record(struct json *j, const struct policy_record *r);
