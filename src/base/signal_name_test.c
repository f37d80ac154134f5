/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signal_name.h"

#include <signal.h>
#include <string.h>

#include "t.h"

/* Tests are built with the library that has names of its own. */
static void same_as_the_library(void)
{
	for (int i = 1; i < SIGRTMIN; i++) {
		const char *theirs = sigabbrev_np(i), *ours = signal_name(i);

		CHECK((!theirs && !ours) || (theirs && ours && strcmp(theirs, ours) == 0));
	}
}

static void others_have_none(void)
{
	CHECK(signal_name(0) == NULL);
	CHECK(signal_name(-1) == NULL);
	CHECK(signal_name(64) == NULL);
	CHECK(signal_name(INT64_MAX) == NULL);
	CHECK(signal_name(((int64_t)1 << 32) + SIGKILL) == NULL);
}

T_MAIN(T(same_as_the_library), T(others_have_none))
