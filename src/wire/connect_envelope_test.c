/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/connect_envelope.h"

#include <errno.h>

#include "t.h"

static void what_is_written_is_read(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);
	struct envelope e;

	CHECK(envelope_put(&b, 0, STR("hello")) == 0);
	CHECK(envelope_put(&b, ENVELOPE_END, STR("{}")) == 0);
	CHECK(b.len == 17 && memcmp(b.data, "\0\0\0\0\5hello\2\0\0\0\2{}", 17) == 0);
	for (size_t n = 0; n < 10; n++)
		CHECK(envelope_parse((struct str){ b.data, n }, 10, &e) == 0);
	CHECK(envelope_parse(buf_str(&b), 10, &e) == 10);
	CHECK(e.flags == 0 && str_is(e.payload, "hello"));
	CHECK(envelope_parse((struct str){ b.data + 10, 7 }, 10, &e) == 7);
	CHECK(e.flags == ENVELOPE_END && str_is(e.payload, "{}"));
}

static void limits_and_flags_are_checked(void)
{
	struct envelope e;

	CHECK(envelope_parse(STR("\0\0\0\0\5hello"), 5, &e) == 10);
	CHECK(envelope_parse(STR("\0\0\0\0\5hello"), 4, &e) == -E2BIG);
	CHECK(envelope_parse(STR("\0\xff\xff\xff\xff"), 1 << 20, &e) == -E2BIG);
	CHECK(envelope_parse(STR("\4"), 5, &e) == -EBADMSG);
	CHECK(envelope_put(&(struct buf)BUF_INIT(100), 4, STR("")) == -EINVAL);
}

static void nothing_is_left_of_what_does_not_fit(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8);

	CHECK(envelope_put(&b, 0, STR("hello")) == -E2BIG && b.len == 0);
}

T_MAIN(T(what_is_written_is_read), T(limits_and_flags_are_checked),
       T(nothing_is_left_of_what_does_not_fit))
