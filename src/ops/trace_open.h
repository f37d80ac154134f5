/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the trace of a sandbox that runs, was lost, or has ended. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "ops/cay.h"
#include "trace/read.h"
#include "trace/verify.h"

struct trace_found {
	struct cay *cay; /* borrowed */
	int fd;		 /* of the trace, read-only; with several segments of that which is read */
	uint64_t start;	 /* of that segment in the whole trace */
	bool cut;	 /* older segments were dropped */
	char id[ID_SIZE];
	bool has_head; /* the running sandbox told how its trace ends */
	struct trace_head head;
	char note[sizeof((struct err *)0)->msg + 64]; /* why there is no head although it runs */
};

/*
 * ref: id, name or a unique prefix of an id; of ended sandboxes with the same name the one that
 * ended last. A running sandbox is asked first to write every event up to now.
 */
int op_trace_open(struct cay *c, const char *ref, struct trace_found *ret, struct err *e);
void trace_open_done(struct trace_found *f);
DEFINE_AUTO(struct trace_found, trace_open_done)
bool trace_open_is_alive(const struct trace_found *f);
/* Read it from its first segment to its last. Changes f, which must outlive lines. */
void trace_open_lines(struct trace_found *f, struct trace_lines *lines);
