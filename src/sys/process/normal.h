/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The normal form of a process: limits, priority and identity that do not depend on its parent. A
 * warden enters the normal form before it builds, because its sandbox inherits these properties.
 *
 * Without privileges a process cannot raise a hard limit or its priority. Then the normal form
 * keeps the lower value. So the form can differ between two processes, but a process can plan it
 * for a child without changing itself: the pool key (ops/pool/ready_key.h) has the planned form.
 */
#pragma once

#include <stdint.h>
#include <sys/resource.h>

struct normal {
	struct rlimit limits[RLIMIT_NLIMITS];
	int64_t nice, policy; /* policy: SCHED_OTHER, or SCHED_IDLE that we may not leave */
};

/* The normal form that this process, or a child of it, would enter. 0 or -errno. */
int normal_plan(struct normal *ret);
/* Enter it. 0, or -errno of the first step that failed; the other steps are done anyway. */
int normal_enter(const struct normal *n);
