/* SPDX-License-Identifier: Apache-2.0 */
#include "base/b64.h"

#include <errno.h>

#include "t.h"

static void vectors_of_rfc_4648_hold(void)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		auto_done(buf_done) struct buf to = BUF_INIT(64), back = BUF_INIT(64);

		CHECK(b64_encode(&to, str_of(pairs[i][0])) == 0);
		CHECK_STR(to.data, pairs[i][1]);
		CHECK(b64_decode(&back, buf_str(&to)) == 0);
		CHECK(str_is(buf_str(&back), pairs[i][0]));
	}
}

static void all_byte_values_round_trip(void)
{
	auto_done(buf_done) struct buf to = BUF_INIT(512), back = BUF_INIT(256);
	char bytes[256];

	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	CHECK(b64_encode(&to, (struct str){ bytes, sizeof bytes }) == 0);
	CHECK(b64_decode(&back, buf_str(&to)) == 0);
	CHECK(str_eq(buf_str(&back), (struct str){ bytes, sizeof bytes }));
}

static void decoding_refuses_what_the_encoder_cannot_produce(void)
{
	static const char *const bad[] = { "Z",	   "Zg=",  "Zg",       "Zh==", "Zm9=", "====",
					   "=m9v", "Zm9 ", "Zg==Zg==", "Z===", "Zm=v", "Zm9v\n" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(64);

		CHECK(b64_decode(&b, str_of(bad[i])) == -EBADMSG);
		CHECK(b.len == 0);
	}
}

T_MAIN(T(vectors_of_rfc_4648_hold), T(all_byte_values_round_trip),
       T(decoding_refuses_what_the_encoder_cannot_produce))
