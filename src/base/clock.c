/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t = { 0 };

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t clock_coarse_ns(void)
{
	return read_clock(CLOCK_REALTIME_COARSE);
}

void clock_text(uint64_t real_ns, char out[CLOCK_TEXT_SIZE])
{
	time_t s = (time_t)(real_ns / NS_PER_S);
	unsigned us = (unsigned)(real_ns % NS_PER_S / NS_PER_US);
	struct tm tm = { 0 };

	(void)gmtime_r(&s, &tm);
	(void)snprintf(out, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
		       (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
		       (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		       (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u, us % 1000000u);
}
