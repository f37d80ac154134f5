/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events for people: one aligned line each.
 *
 *   12:03:04.123  call 2  process.exec    make -j2  (/usr/bin/make, pid 14)
 *   12:03:05.200  call 2  call.exit       exit 0 after 1.07 s, 210 bytes out
 *
 * Times are local; a line with the date comes first where the day is not the one before
 * (for the first event: not today). All text of the sandbox goes through text_safe_cut():
 * long arguments end with an ellipsis, --json has them whole.
 */
#pragma once

#include "trace/read.h"

struct trace_text {
	bool color;
	int day; /* of the last event written, as year * 1000 + day of year */
};

/* Every kind that is written, sorted; terminated by NULL. */
extern const char *const trace_kinds[];

void trace_text_init(struct trace_text *t, bool color);
/* Append the event with its newline. 0 or -errno as buf_add(). */
int trace_text_event(struct trace_text *t, const struct trace_event *ev, struct buf *out);
