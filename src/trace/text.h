/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events for people: one aligned line each.
 *
 *   12:03:04.123  call 2  process.exec    make -j2  (/usr/bin/make, pid 14)
 *   12:03:05.200  call 2  call.exit       exit 0 after 1.07 s, 210 bytes out
 *
 * Times are local. A line with the date comes first if the day changes (for the first event: if it
 * is not today). All text from the sandbox goes through text_safe_cut(): long arguments end with an
 * ellipsis; --json shows them completely.
 */
#pragma once

#include "trace/read.h"

struct trace_text {
	bool color;
	int day; /* day of the last event, as year * 1000 + day of year */
};

/* Every kind of event, sorted; NULL at the end. */
extern const char *const trace_kinds[];

void trace_text_init(struct trace_text *t, bool color);
/* Append the event with its newline. 0 or -errno as buf_add(). */
int trace_text_event(struct trace_text *t, const struct trace_event *ev, struct buf *out);
