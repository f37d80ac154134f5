/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace line by line, from a file of any size that may still grow, and parses the event in
 * a line. Memory is bounded by LIMIT_EVENT.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct trace_lines {
	int fd; /* borrowed */
	/* At the end of a file: closes fd and returns the next file of the trace, or FD_NONE. */
	int (*next)(void *ctx);
	void *ctx;
	struct buf in;
	size_t at;     /* bytes of `in` already returned */
	uint64_t line; /* number of the last line returned, from 1 */
};

void trace_lines_init(struct trace_lines *l, int fd);
void trace_lines_done(struct trace_lines *l);
DEFINE_AUTO(struct trace_lines, trace_lines_done)
/*
 * 1 and a view without the newline, valid until the next call. 0 at the end; an unfinished last
 * line stays for later. -E2BIG for a line above LIMIT_EVENT; or -errno.
 */
int trace_lines_next(struct trace_lines *l, struct str *ret);
/* Size of an unfinished last line. */
size_t trace_lines_rest(const struct trace_lines *l);

struct trace_event {
	json_t *json; /* owned; the views point into it */
	uint64_t seq;
	uint64_t parent;
	uint32_t call;
	struct str time, sandbox, kind, prev;
};

/* INVALID, with the reason, if the line is not an event; then *ret is untouched. */
int trace_event_parse(struct str line, struct trace_event *ret, struct err *e);
/* Allowed on a zeroed event. */
void trace_event_done(struct trace_event *ev);
DEFINE_AUTO(struct trace_event, trace_event_done)

/*
 * Kind and call (0: none) of a line that starts exactly as trace/log.c writes it, without parsing
 * the rest: 0.1 us instead of 6. False for any other line.
 */
bool trace_event_glance(struct str line, struct str *ret_kind, uint32_t *ret_call);

/* Append the bytes of a text, plain or {"b64":…}. -EINVAL if it is neither. */
int trace_value_text(const json_t *value, struct buf *out);
