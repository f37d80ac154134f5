/* SPDX-License-Identifier: Apache-2.0 */
/* Ask many wardens the same question in parallel. */
#pragma once

#include "link/decode.h"

struct client_question {
	const char *id; /* borrowed; NULL: not asked */
	bool known;	/* the warden has answered, and the fields below are valid */
	struct sandbox_status state;
};

/*
 * Send MSG_C_INFO. A warden that does not answer within timeout_ms stays unknown. Many wardens are
 * asked in rounds, and each round has timeout_ms.
 */
void client_info_many(const struct state *s, struct client_question *qs, int n, int timeout_ms);
