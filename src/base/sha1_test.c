/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include "t.h"

static void is(const char *text, size_t times, size_t step, const char *want)
{
	struct sha1 s;
	char hex[SHA1_HEX];

	sha1_init(&s);
	for (size_t i = 0; i < times; i++)
		for (size_t at = 0, n = strlen(text); at < n; at += step)
			sha1_add(&s, text + at, n - at < step ? n - at : step);
	sha1_end(&s, hex);
	CHECK_STR(hex, want);
}

/* FIPS 180-1, appendices A to C. */
static void examples_of_the_standard_hold(void)
{
	is("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	is("abc", 1, 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 56,
	   "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	is("aaaaaaaaaa", 100000, 10, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

static void pieces_of_any_size_give_the_same_hash(void)
{
	for (size_t step = 1; step < 70; step++)
		is("0123456789012345678901234567890123456789012345678901234567890123", 10, step,
		   "a6f69c23afe00ff1dfcc8077c2e42ac12d586903");
}

T_MAIN(T(examples_of_the_standard_hold), T(pieces_of_any_size_give_the_same_hash))
