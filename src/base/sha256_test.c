/* SPDX-License-Identifier: Apache-2.0 */
/* Included with its source, to test both implementations on any CPU. */
#include "base/sha256.c" /* NOLINT(bugprone-suspicious-include): see above */

#include "t.h"

static void check(const char *in, const char *want)
{
	uint8_t hash[SHA256_SIZE];
	char hex[SHA256_HEX];

	sha256(in, strlen(in), hash);
	sha256_hex(hash, hex);
	CHECK_STR(hex, want);
}

static void vectors_of_fips_180_hold(void)
{
	check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
	      "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void a_million_letters_in_odd_pieces_hold(void)
{
	uint8_t hash[SHA256_SIZE];
	char hex[SHA256_HEX], piece[997];
	struct sha256 s;

	memset(piece, 'a', sizeof piece);
	sha256_init(&s);
	for (size_t left = 1000000; left > 0;) {
		size_t n = left % sizeof piece + 1 < left ? left % sizeof piece + 1 : left;

		sha256_add(&s, piece, n < sizeof piece ? n : sizeof piece);
		left -= n < sizeof piece ? n : sizeof piece;
	}
	sha256_end(&s, hash);
	sha256_hex(hash, hex);
	CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void every_cut_gives_the_same_hash(void)
{
	uint8_t bytes[200], whole[SHA256_SIZE], parts[SHA256_SIZE];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		sha256(bytes, n, whole);
		for (size_t cut = 0; cut <= n; cut++) {
			struct sha256 s;

			sha256_init(&s);
			sha256_add(&s, bytes, cut);
			sha256_add(&s, bytes + cut, n - cut);
			sha256_end(&s, parts);
			CHECK(memcmp(whole, parts, sizeof whole) == 0);
		}
	}
}

static void plain_and_accelerated_code_agree(void)
{
#ifdef __x86_64__
	uint8_t in[64 * 5];
	struct sha256 a, b;

	if (!cpu_has_sha())
		return;
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(i * i + 3);
	sha256_init(&a);
	sha256_init(&b);
	blocks_plain(a.state, in, 5);
	blocks_ni(b.state, in, 5);
	CHECK(memcmp(a.state, b.state, sizeof a.state) == 0);
#endif
}

T_MAIN(T(vectors_of_fips_180_hold), T(a_million_letters_in_odd_pieces_hold),
       T(every_cut_gives_the_same_hash), T(plain_and_accelerated_code_agree))
