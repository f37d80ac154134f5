/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a trace is what its sandbox wrote: every line is an event, in sequence, of one
 * sandbox, with the hash of the line before. Reads the file once, with constant memory.
 *
 * The chain alone cannot detect that the last events were cut off, or that the whole file was
 * rewritten with new hashes. A head from the running sandbox can.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

struct trace_head {
	uint64_t seq;
	char hash[SHA256_HEX];
};

struct trace_lines;

struct trace_summary {
	char sandbox[32];
	uint64_t dropped; /* events missing before the first; the trace itself says that they were
			     dropped */
	struct trace_head head; /* the last event; seq 0: the trace is empty */
};

/*
 * sandbox: the id that every event must have, or NULL: that of the first event. head: if given, the
 * event with this number must exist and have this hash. Later events are checked too, but the last
 * line may be unfinished.
 *
 * A trace that does not begin with event 1 is complete only if it has a trace.drop event with the
 * number and hash of the last missing event.
 *
 * FAILED, with the line and the reason.
 */
int trace_verify(int fd, const char *sandbox, const struct trace_head *head,
		 struct trace_summary *ret, struct err *e);
/* The same for a trace in several files. lines: positioned at its beginning. */
int trace_verify_lines(struct trace_lines *lines, const char *sandbox,
		       const struct trace_head *head, struct trace_summary *ret, struct err *e);
