/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: monotonic for durations, real time for display. Nanoseconds unless the name says otherwise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
/* The kernel's coarse clock, which sets inode times. It is never later than clock_real_ns(). */
uint64_t clock_coarse_ns(void);

enum { CLOCK_TEXT_SIZE = sizeof "2026-01-01T00:00:00.000000Z" };
/* RFC 3339 in UTC with microseconds. */
void clock_text(uint64_t real_ns, char out[CLOCK_TEXT_SIZE]);
