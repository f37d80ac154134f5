/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the segments of a trace. The first segment has just the trace's name; the others add the
 * offset of their first byte in the whole trace: trace.jsonl, trace.16777301.jsonl. So a reader at
 * the end of a segment knows the name of the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { TRACE_NAME = 64 };

static inline void trace_name(char out[TRACE_NAME], const char *stem, uint64_t start)
{
	if (start)
		(void)snprintf(out, TRACE_NAME, "%.32s.%llu.jsonl", stem,
			       (unsigned long long)start);
	else
		(void)snprintf(out, TRACE_NAME, "%.32s.jsonl", stem);
}

/* True, with the stem and the offset, if trace_name() makes this name. */
static inline bool trace_name_parse(const char *name, struct str *ret_stem, uint64_t *ret_start)
{
	const char *dot = strchr(name, '.');
	uint64_t start = 0;
	char again[TRACE_NAME], stem[33];

	if (!dot || !str_copy(stem, sizeof stem, (struct str){ name, (size_t)(dot - name) }))
		return false;
	for (const char *p = dot + 1; *p >= '0' && *p <= '9' && start < UINT64_MAX / 100; p++)
		start = start * 10 + (uint64_t)(*p - '0');
	trace_name(again, stem, start);
	*ret_stem = (struct str){ name, (size_t)(dot - name) };
	*ret_start = start;
	return strcmp(again, name) == 0;
}
