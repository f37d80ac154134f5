/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: which version, and what the caller may do below its own group. */
#pragma once

#include "sys/probe/probe.h"

enum probe_cgroup_mode {
	PROBE_CGROUP_NONE,
	PROBE_CGROUP_V1,
	PROBE_CGROUP_V2,
	PROBE_CGROUP_HYBRID, /* both are mounted */
};

enum { PROBE_CG_MEMORY, PROBE_CG_PIDS, PROBE_CG_CPU, PROBE_CG_IO, PROBE_CG_CONTROLLERS };

/* Sets of controllers are bits 1 << PROBE_CG_x. */
struct probe_cgroup {
	enum probe_cgroup_mode mode;
	char mount[256]; /* of the v2 hierarchy */
	char own[256];	 /* our group in the v2 hierarchy */
	int make;	 /* making a group below our own */
	int clone_into;	 /* cloning a process directly into that group */
	bool kill, freeze;
	unsigned offered; /* v2: controllers that our group has */
	unsigned given;	  /* v2: controllers that a group below ours already has */
	unsigned v1;	  /* v1: hierarchies in which we can make groups */
};

const char *probe_cgroup_controller(int i);
enum probe_cgroup_mode probe_cgroup_mode(struct str mountinfo);
/* Our group in the hierarchy of a v1 controller, or with NULL in v2; from /proc/self/cgroup. */
bool probe_cgroup_own(struct str cgroup, const char *controller, struct str *ret);
/* The set of controllers in text, separated by blanks or commas; v1's blkio counts as io. */
unsigned probe_cgroup_set(struct str text);
void probe_cgroup(struct probe_cgroup *ret);
