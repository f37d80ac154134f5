/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hmac.h"

#include "t.h"

static void check(struct str key, struct str text, const char *want)
{
	uint8_t out[SHA256_SIZE];
	char hex[SHA256_HEX];

	hmac_sha256(key, text, out);
	sha256_hex(out, hex);
	CHECK_STR(hex, want);
}

static void the_vectors_of_rfc_4231_come_out(void)
{
	char key[131];

	memset(key, 0xaa, sizeof key);
	check(STR("Jefe"), STR("what do ya want for nothing?"),
	      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	check((struct str){ key, sizeof key },
	      STR("Test Using Larger Than Block-Size Key - Hash Key First"),
	      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void secrets_are_equal_only_if_all_bytes_are(void)
{
	CHECK(secret_eq(STR("abc"), STR("abc")) && secret_eq(STR_NONE, STR("")));
	CHECK(!secret_eq(STR("abc"), STR("abd")) && !secret_eq(STR("abc"), STR("ab")));
	CHECK(!secret_eq(STR("xbc"), STR("abc")));
}

T_MAIN(T(the_vectors_of_rfc_4231_come_out), T(secrets_are_equal_only_if_all_bytes_are))
