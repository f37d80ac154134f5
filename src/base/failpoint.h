/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named places at which a test lets the process die as if it were killed. Only in builds made for
 * that (meson option `failpoints`): there CAY_FAILPOINT names one, and the process that comes to
 * it is gone. Everywhere else it is nothing.
 */
#pragma once

#ifdef CAY_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void failpoint(const char *name)
{
	const char *want = getenv("CAY_FAILPOINT");

	if (want && strcmp(want, name) == 0)
		(void)kill(getpid(), SIGKILL);
}
#else
static inline void failpoint(const char *name)
{
	(void)name;
}
#endif
