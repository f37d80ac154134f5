/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signal_name.h"

#include <signal.h>
#include <string.h>

#include "t.h"

/* Tests are built with the C library that has signal names. */
static void names_match_the_c_library(void)
{
	for (int i = 1; i < SIGRTMIN; i++) {
		const char *theirs = sigabbrev_np(i), *ours = signal_name(i);

		CHECK((!theirs && !ours) || (theirs && ours && strcmp(theirs, ours) == 0));
	}
}

static void other_numbers_have_no_name(void)
{
	CHECK(signal_name(0) == NULL);
	CHECK(signal_name(-1) == NULL);
	CHECK(signal_name(64) == NULL);
	CHECK(signal_name(INT64_MAX) == NULL);
	CHECK(signal_name(((int64_t)1 << 32) + SIGKILL) == NULL);
}

T_MAIN(T(names_match_the_c_library), T(other_numbers_have_no_name))
