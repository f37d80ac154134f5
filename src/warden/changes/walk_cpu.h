/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the processor time of calls that run beside each other (changes_idle.h). A single call
 * is never sampled. Beside each other, calls are sampled when one begins or ends, before a walk,
 * and in between: every 100 ms while one of them is busy, and less often while all are idle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct warden;

/* A call is about to begin or end, or a walk to begin. */
void walk_sample(struct warden *w);
/* Nanoseconds to wait with a walk, so that the next sample says something about the last change. */
uint64_t walk_sample_due_ns(struct warden *w);
