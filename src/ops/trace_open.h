/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the trace of a running, lost or ended sandbox. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "ops/cay.h"
#include "trace/read.h"
#include "trace/verify.h"

struct trace_found {
	struct cay *cay; /* borrowed */
	int fd;		 /* the trace, read-only; with several segments, the current one */
	uint64_t start;	 /* offset of that segment in the whole trace */
	bool cut;	 /* older segments were deleted */
	char id[ID_SIZE];
	bool has_head; /* the running sandbox reported where its trace ends */
	struct trace_head head;
	char note[sizeof((struct err *)0)->msg +
		  64]; /* why there is no head although the sandbox runs */
};

/*
 * ref: id, name or a unique prefix of an id; among ended sandboxes of the same name, the most
 * recent. Asks a running sandbox first to write all events up to now.
 */
int op_trace_open(struct cay *c, const char *ref, struct trace_found *ret, struct err *e);
void trace_open_done(struct trace_found *f);
DEFINE_AUTO(struct trace_found, trace_open_done)
bool trace_open_is_alive(const struct trace_found *f);
/* Read from the first segment to the last. Changes f, which must outlive lines. */
void trace_open_lines(struct trace_found *f, struct trace_lines *lines);

struct json;
/* The result of trace_verify_lines(). */
void json_trace_verified(struct json *j, const struct trace_found *f,
			 const struct trace_summary *sum);
