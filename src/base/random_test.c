/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include "t.h"

static void every_byte_is_filled(void)
{
	unsigned char seen[4096] = { 0 }, b[4096];

	/* A byte that is never written stays zero in all rounds. By chance: 2^-64 per byte. */
	for (int round = 0; round < 8; round++) {
		memset(b, 0, sizeof b);
		CHECK(random_bytes(b, sizeof b) == 0);
		for (size_t i = 0; i < sizeof b; i++)
			seen[i] |= b[i];
	}
	for (size_t i = 0; i < sizeof seen; i++)
		CHECK(seen[i] != 0);
}

static void nothing_past_the_end_is_written(void)
{
	char b[9] = "xxxxxxxx";

	CHECK(random_bytes(b, 0) == 0);
	CHECK_STR(b, "xxxxxxxx");
	CHECK(random_bytes(b, 4) == 0);
	CHECK_STR(b + 4, "xxxx");
}

T_MAIN(T(every_byte_is_filled), T(nothing_past_the_end_is_written))
