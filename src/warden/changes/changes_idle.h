/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a call was idle: the kernel charged it no processor time. A call that was idle around the
 * ctime of a file did not change that file. This is certain, unlike the time window alone.
 *
 * CHANGES_LATE_NS is the margin after the ctime. A ctime may be one tick older than the change, and
 * the time of a running task is charged at the next tick; a tick is at most 10 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CHANGES_LATE_NS 20000000ull

enum { CHANGES_IDLES = 32 };

struct changes_idle {
	uint64_t from_ns, to_ns; /* clock_real_ns() */
};

/* The latest idle times of one call. Zeroed: none. */
struct changes_idles {
	struct changes_idle v[CHANGES_IDLES];
	uint32_t n;
	bool sampled;
	uint64_t cpu_us; /* the last sample */
};

/*
 * The call had used cpu_us at some moment between the two times. usable: false if the time of the
 * call since the last sample says nothing, because another process worked for it.
 */
void changes_idle_sample(struct changes_idles *x, uint64_t before_ns, uint64_t after_ns,
			 uint64_t cpu_us, bool usable);
/* True if the call cannot have changed anything between the two ctimes. */
bool changes_idle_covers(const struct changes_idles *x, uint64_t from_ns, uint64_t to_ns);
