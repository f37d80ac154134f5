/* SPDX-License-Identifier: Apache-2.0 */
/* The same question to many wardens, side by side. */
#pragma once

#include "link/decode.h"

struct client_question {
	const char *id; /* borrowed; NULL: not asked */
	bool known;	/* it has answered: */
	struct sandbox_status state;
};

/*
 * MSG_C_INFO. Wardens that do not answer within timeout_ms are not known. Many are asked in rounds,
 * each of which has so much time.
 */
void client_info_many(const struct state *s, struct client_question *qs, int n, int timeout_ms);
