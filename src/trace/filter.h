/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Select events of a trace. Must see every event in order, because it learns call numbers from
 * them.
 */
#pragma once

#include "trace/read.h"

struct trace_filter {
	const char *kind; /* borrowed; NULL: all */
	const char *call; /* borrowed; NULL: all */
	uint32_t *calls;  /* numbers of the selected call */
	size_t ncalls;
	bool call_seen; /* an event of the selected call was seen */
};

/*
 * kind: an exact kind, its part before the dot, or a glob. INVALID if no kind matches. call: our
 * number, or the caller's own id, which may match several calls.
 */
int trace_filter_init(struct trace_filter *f, const char *kind, const char *call, struct err *e);
void trace_filter_done(struct trace_filter *f);
DEFINE_AUTO(struct trace_filter, trace_filter_done)

/* True if everything passes, so that lines need no parsing. */
bool trace_filter_passes_all(const struct trace_filter *f);
/* True if the line can be skipped without full parsing. */
bool trace_filter_skips(const struct trace_filter *f, struct str line);
/*
 * 1: selected, 0: not, -ENOMEM. A change that several calls may have made belongs to each of them.
 */
int trace_filter_check(struct trace_filter *f, const struct trace_event *ev);
