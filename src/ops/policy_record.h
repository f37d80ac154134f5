/* SPDX-License-Identifier: Apache-2.0 */
/* The network policy of a sandbox: what holds now, and how it came about. */
#pragma once

#include <jansson.h>

#include "ops/cay.h"
#include "policy/policy.h"
#include "wire/json_write.h"

struct policy_record {
	char id[ID_SIZE];
	struct policy *now; /* NULL: no network, or it has ended */
	char hash[65];	    /* of it */
	json_t *history;    /* its events policy.set, oldest first; may be NULL */
	bool cut;	    /* older events are not in the trace any more */
};

/* ref: a sandbox, also one that has ended. Of an ended one only the history is known. */
int op_policy_record(struct cay *c, const char *ref, struct policy_record *ret, struct err *e);
void policy_record_done(struct policy_record *r);
DEFINE_AUTO(struct policy_record, policy_record_done)
/* Only what holds now: r->now, NULL without a network. */
int policy_record_now(struct cay *c, const char *id, struct policy_record *r, struct err *e);

void json_policy_record(struct json *j, const struct policy_record *r);
