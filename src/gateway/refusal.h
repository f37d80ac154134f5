/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a denial, for the client. */
#pragma once

#include "base/buf.h"

struct refusal {
	struct str rule;
	const char *reason; /* a word */
	const char *why;    /* a sentence */
	const char *fix;    /* the line that would allow it, or empty */
	const char *target; /* or NULL */
	struct str method, path;
};

/* An HTTP answer with a JSON body: {"error":"denied_by_policy","target":…,"rule":…}. */
int refusal_answer(const struct refusal *r, int status, struct buf *b);
