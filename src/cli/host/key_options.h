/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say what a key may do and use: of cay key create, cay key set and cay serve. */
#pragma once

#include "cli/cmd.h"
#include "ops/key.h"

struct key_opts {
	const char *limits[KEY_LIMITS];
	const char *scope;
};

#define KEY_LIMIT_ROWS(o) \
	{ \
		"max-sandboxes",	   0, OPT_TEXT, "N", "Sandboxes alive at once", \
		&(o).limits[KEY_SANDBOXES] \
	}, \
		{ "memory", \
		  0, \
		  OPT_TEXT, \
		  "SIZE", \
		  "Memory limits of its sandboxes together", \
		  &(o).limits[KEY_MEMORY] }, \
		{ "cpus", \
		  0, \
		  OPT_TEXT, \
		  "N", \
		  "CPU limits of its sandboxes together", \
		  &(o).limits[KEY_CPU_MILLI] }, \
		{ "snapshots", 0, OPT_TEXT, "N", "Snapshots kept", &(o).limits[KEY_SNAPSHOTS] }, \
		{ "rate", 0, OPT_TEXT, "N/min", "Sandboxes made per minute", &(o).limits[KEY_RATE] }, \
		{ "calls", 0, OPT_TEXT, "N", "Requests and streams at once", &(o).limits[KEY_CALLS] }, \
		{ "sandbox-memory",	      0, OPT_TEXT, "SIZE", "Memory of each sandbox", \
		  &(o).limits[KEY_BOX_MEMORY] }, \
		{ "sandbox-cpus", \
		  0, \
		  OPT_TEXT, \
		  "N", \
		  "CPUs of each sandbox", \
		  &(o).limits[KEY_BOX_CPU_MILLI] }, \
		{ "sandbox-pids", \
		  0, \
		  OPT_TEXT, \
		  "N", \
		  "Processes and threads of each sandbox", \
		  &(o).limits[KEY_BOX_PIDS] }, \
	{ \
		"sandbox-disk", 0, OPT_TEXT, "SIZE", "Files of each sandbox", \
			&(o).limits[KEY_BOX_DISK] \
	}

/* INVALID names the option. What was not given stays 0. */
int key_opts_read(const struct key_opts *o, struct key_limits *ret, struct err *e);
