/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning and the end of a trace: which sandbox it was, what ran first, and why it ended.
 * Reads a bounded part of both ends, so that a list of traces does not take longer for large ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct trace_story {
	char name[64], template_[256];
	char created[40], last[40]; /* times of the first and of the last event, as in the trace */
	char *argv;		    /* JSON array of the first call found, or NULL */
	uint64_t events;	    /* number of the last event */
	/* The last call that ended, if it is near the end of the trace. */
	uint64_t call;	      /* 0: none */
	char call_reason[32]; /* exit, signal, timeout, oom, ... */
	int64_t code, signal; /* or -1 */
	/* sandbox.end */
	bool has_end;
	char cause[16], reason[256];
	char by[64];		/* the program that requested the end */
	int64_t by_pid, by_uid; /* or -1 */
};

/* first and last: descriptors of the first and last segment; may be the same. */
void trace_story_read(int first, int last, struct trace_story *ret);
void trace_story_done(struct trace_story *s);
DEFINE_AUTO(struct trace_story, trace_story_done)
