/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of a trace are wanted. Fed with every event in order, for it learns from them. */
#pragma once

#include "trace/read.h"

struct trace_filter {
	const char *kind; /* borrowed; NULL: all */
	const char *call; /* borrowed; NULL: all */
	uint32_t *calls;  /* our numbers of the wanted call */
	size_t ncalls;
	bool call_seen; /* an event of the wanted call came by */
};

/*
 * kind: an exact kind, its part before the dot, or a glob. INVALID where no kind matches.
 * call: our number, or the caller's own id, which may name several calls.
 */
int trace_filter_init(struct trace_filter *f, const char *kind, const char *call, struct err *e);
void trace_filter_done(struct trace_filter *f);
DEFINE_AUTO(struct trace_filter, trace_filter_done)

/* True where everything passes, so that lines need not be parsed. */
bool trace_filter_passes_all(const struct trace_filter *f);
/* True where a glance tells that the line is not wanted and teaches nothing. */
bool trace_filter_skips(const struct trace_filter *f, struct str line);
/*
 * 1: wanted, 0: not, -ENOMEM. A change that several calls may have made belongs to each.
 */
int trace_filter_check(struct trace_filter *f, const struct trace_event *ev);
