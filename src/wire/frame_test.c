/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <errno.h>

#include "base/limits.h"
#include "t.h"

static struct str rest(const struct buf *b, size_t from)
{
	return (struct str){ b->data + from, b->len - from };
}

static void the_layout_is_the_documented_one(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	size_t at = 0;

	CHECK(frame_begin(&b, 0x42, 0x04030201, &at) == 0);
	CHECK(field_put(&b, 0x0605, STR("xyz")) == 0);
	CHECK(frame_end(&b, at, 2) == 0);
	CHECK(str_eq(buf_str(&b), STR("\x09\0\0\0\x42\x02\0\0\x01\x02\x03\x04"
				      "\x05\x06\x03\0\0\0xyz")));
}

static void frames_are_parsed_one_after_the_other(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	struct frame f = { 0 };

	CHECK(frame_put(&b, 1, 7, STR("hello")) == 0);
	CHECK(frame_put(&b, 255, UINT32_MAX, STR_NONE) == 0);
	CHECK(frame_parse(buf_str(&b), &f) == FRAME_HEADER + 5);
	CHECK(f.type == 1 && f.chan == 7 && f.nfds == 0 && str_is(f.body, "hello"));
	CHECK(frame_parse(rest(&b, FRAME_HEADER + 5), &f) == FRAME_HEADER);
	CHECK(f.type == 255 && f.chan == UINT32_MAX && f.body.n == 0);
}

static void every_truncation_asks_for_more_and_writes_nothing(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	CHECK(frame_put(&b, 1, 7, STR("hello")) == 0);
	for (size_t n = 0; n < b.len; n++) {
		struct frame f = { .type = 99 };

		CHECK(frame_parse((struct str){ b.data, n }, &f) == 0);
		CHECK(f.type == 99);
	}
}

static void a_body_of_the_limit_passes(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY + FRAME_HEADER);
	auto_free char *body = calloc(1, LIMIT_FRAME_BODY);
	struct frame f = { 0 };

	CHECK(frame_put(&b, 1, 0, (struct str){ body, LIMIT_FRAME_BODY }) == 0);
	CHECK(frame_parse(buf_str(&b), &f) == LIMIT_FRAME_BODY + FRAME_HEADER);
	CHECK(f.body.n == LIMIT_FRAME_BODY);
}

static void one_byte_past_the_limit_is_not_built(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_FRAME_BODY);
	auto_free char *body = calloc(1, LIMIT_FRAME_BODY + 1);

	CHECK(buf_add_c(&b, "before") == 0);
	CHECK(frame_put(&b, 1, 0, (struct str){ body, LIMIT_FRAME_BODY + 1 }) == -EMSGSIZE);
	CHECK(b.len == 6);
	CHECK_STR(b.data, "before");
	CHECK(field_put(&b, 1, (struct str){ body, LIMIT_FRAME_BODY + 1 }) == -EMSGSIZE);
	CHECK(b.len == 6);
}

static void one_byte_past_the_limit_is_refused_from_the_header_alone(void)
{
	char head[FRAME_HEADER] = { 0 };
	uint32_t len = LIMIT_FRAME_BODY + 1;
	struct frame f = { 0 };

	for (int i = 0; i < 4; i++)
		head[i] = (char)(len >> 8 * i & 0xff);
	CHECK(frame_parse((struct str){ head, sizeof head }, &f) == -EMSGSIZE);
	memset(head, 0xff, 4);
	CHECK(frame_parse((struct str){ head, sizeof head }, &f) == -EMSGSIZE);
}

static void too_many_descriptors_are_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	struct frame f = { 0 };
	size_t at = 0;

	CHECK(frame_begin(&b, 1, 0, &at) == 0);
	CHECK(frame_end(&b, at, LIMIT_FRAME_FDS + 1) == -EMSGSIZE);
	CHECK(frame_end(&b, at, LIMIT_FRAME_FDS) == 0);
	CHECK(frame_parse(buf_str(&b), &f) == FRAME_HEADER && f.nfds == LIMIT_FRAME_FDS);
	b.data[5] = LIMIT_FRAME_FDS + 1;
	CHECK(frame_parse(buf_str(&b), &f) == -EBADMSG);
	b.data[5] = (char)0xff;
	CHECK(frame_parse(buf_str(&b), &f) == -EBADMSG);
}

static void reserved_bytes_must_be_zero(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	struct frame f = { 0 };

	CHECK(frame_put(&b, 1, 0, STR_NONE) == 0);
	for (int i = 6; i <= 7; i++) {
		b.data[i] = 1;
		CHECK(frame_parse(buf_str(&b), &f) == -EBADMSG);
		b.data[i] = 0;
	}
	CHECK(frame_parse(buf_str(&b), &f) == FRAME_HEADER);
}

static void a_full_buffer_is_unchanged(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FRAME_HEADER + 10);
	size_t at = 77;

	CHECK(frame_put(&b, 1, 0, STR("more than ten")) == -E2BIG);
	CHECK(b.len == 0);
	CHECK(frame_put(&b, 1, 0, STR("exactly 10")) == 0);
	CHECK(frame_begin(&b, 1, 0, &at) == -E2BIG && at == 77);
	buf_cut(&b, 12);
	CHECK(field_put(&b, 1, STR("12345")) == -E2BIG);
	CHECK(b.len == 12 && b.data[12] == '\0');
	CHECK(field_put(&b, 1, STR("1234")) == 0);
}

static void fields_are_parsed_in_order(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	struct field f = { 0 };
	uint64_t v = 0;
	struct str body;

	CHECK(field_put_c(&b, 1, "text") == 0);
	CHECK(field_put_u64(&b, 65535, 0x0102030405060708) == 0);
	CHECK(field_put(&b, 2, STR_NONE) == 0);
	body = buf_str(&b);
	CHECK(field_next(&body, &f) == 1 && f.tag == 1 && str_is(f.value, "text"));
	CHECK(field_u64(f, &v) == -EBADMSG && v == 0);
	CHECK(field_next(&body, &f) == 1 && f.tag == 65535);
	CHECK(field_u64(f, &v) == 0 && v == 0x0102030405060708);
	CHECK(field_next(&body, &f) == 1 && f.tag == 2 && f.value.n == 0);
	CHECK(field_next(&body, &f) == 0);
	CHECK(field_next(&body, &f) == 0);
}

static void a_truncated_field_is_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	CHECK(field_put_c(&b, 1, "text") == 0);
	for (size_t n = 1; n < b.len; n++) {
		struct str body = { b.data, n };
		struct field f = { .tag = 99 };

		CHECK(field_next(&body, &f) == -EBADMSG);
		CHECK(f.tag == 99 && body.n == n);
	}
}

static void a_field_length_of_all_ones_is_refused(void)
{
	struct str body = STR("\x01\0\xff\xff\xff\xffxx");
	struct field f;

	CHECK(field_next(&body, &f) == -EBADMSG);
}

static void a_number_has_exactly_eight_bytes(void)
{
	uint64_t v = 5;

	CHECK(field_u64((struct field){ 1, STR("1234567") }, &v) == -EBADMSG);
	CHECK(field_u64((struct field){ 1, STR("123456789") }, &v) == -EBADMSG);
	CHECK(field_u64((struct field){ 1, STR_NONE }, &v) == -EBADMSG);
	CHECK(v == 5);
}

T_MAIN(T(the_layout_is_the_documented_one), T(frames_are_parsed_one_after_the_other),
       T(every_truncation_asks_for_more_and_writes_nothing), T(a_body_of_the_limit_passes),
       T(one_byte_past_the_limit_is_not_built),
       T(one_byte_past_the_limit_is_refused_from_the_header_alone),
       T(too_many_descriptors_are_refused), T(reserved_bytes_must_be_zero),
       T(a_full_buffer_is_unchanged), T(fields_are_parsed_in_order),
       T(a_truncated_field_is_refused), T(a_field_length_of_all_ones_is_refused),
       T(a_number_has_exactly_eight_bytes))
