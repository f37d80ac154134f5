/* SPDX-License-Identifier: Apache-2.0 */
/* All that is known about a sandbox. */
#pragma once

#include "link/wait.h"
#include "ops/create/options.h"
#include "ops/policy_record.h"

enum { LOG_TAIL = 2048 };

struct call_list {
	struct call_row *rows;
	int n;
	bool failed;
};

struct show_result {
	struct sandbox_row row;
	json_t *spec;
	struct call_list calls;
	bool known; /* the warden answered */
	struct sandbox_status info;
	struct policy_record policy; /* of a sandbox with a network */
	const char *reason;	     /* why it is lost, or NULL */
	char log[LOG_TAIL];	     /* the last line of a lost warden's log */
};

int op_show(struct cay *c, const char *ref, struct show_result *ret, struct err *e);
void show_result_done(struct show_result *v);
DEFINE_AUTO(struct show_result, show_result_done)
