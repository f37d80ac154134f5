/* SPDX-License-Identifier: Apache-2.0 */
/* Everything known about a sandbox. */
#pragma once

#include "link/wait.h"
#include "ops/create/options.h"
#include "ops/ended.h"
#include "ops/policy_record.h"

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
	struct policy_record policy; /* if the sandbox has a network */
	bool lost;
	struct ended_row end; /* if the sandbox is lost */
};

int op_show(struct cay *c, const char *ref, struct show_result *ret, struct err *e);
void show_result_done(struct show_result *v);
DEFINE_AUTO(struct show_result, show_result_done)
