/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace is sent in rounds: a worker copies the next events into a file, and the front sends the
 * file and asks again. Nobody holds more than one round, and a follower costs no worker while
 * nothing happens.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum trace_state {
	TRACE_MORE = 'm', /* ask again at once */
	TRACE_WAIT = 'w', /* ask again when the trace has grown, or in a second */
	TRACE_END = 'e',
};

/* What a worker says of a round, as the answer's `next`; the front sends it with the next one. */
struct trace_round {
	uint64_t at;   /* offset behind the last event that was looked at */
	uint64_t left; /* events that the client still wants; UINT64_MAX: any */
	char state;
};

enum { TRACE_ROUND_TEXT = 64 };

static inline void trace_round_write(const struct trace_round *t, char out[TRACE_ROUND_TEXT])
{
	(void)snprintf(out, TRACE_ROUND_TEXT, "%llu %llu %c", (unsigned long long)t->at,
		       (unsigned long long)t->left, t->state);
}

static inline int trace_round_read(const char *text, struct trace_round *ret)
{
	unsigned long long at, left;
	char state;

	if (sscanf(text, "%llu %llu %c", &at, &left, &state) != 3)
		return -1;
	*ret = (struct trace_round){ at, left, state };
	return 0;
}
