/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ws_frame.h"

#include <errno.h>

#include "t.h"

static const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };

static void the_example_of_the_rfc_is_read(void)
{
	struct str in = STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), out;
	auto_done(buf_done) struct buf b = BUF_INIT(100);
	struct ws_reader r;

	ws_reader_init(&r, true);
	CHECK(ws_put(&b, WS_TEXT, STR("Hello"), mask) == 0 && str_eq(buf_str(&b), in));
	CHECK(ws_reader_next(&r, &in, &out) == WS_TEXT && str_is(out, "Hello") && in.n == 0);
	CHECK(ws_reader_next(&r, &in, &out) == 0);
	ws_reader_done(&r);
}

static void control_frames_come_between_the_pieces_of_a_message(void)
{
	struct str in = STR("\x01\x02He\x89\x01p\x00\x01l\x80\x02lo\x82\x00"), out;
	struct ws_reader r;

	ws_reader_init(&r, false);
	CHECK(ws_reader_next(&r, &in, &out) == WS_PING && str_is(out, "p"));
	CHECK(ws_reader_next(&r, &in, &out) == WS_TEXT && str_is(out, "Hello"));
	CHECK(ws_reader_next(&r, &in, &out) == WS_BINARY && out.n == 0);
	CHECK(in.n == 0 && ws_reader_next(&r, &in, &out) == 0);
	ws_reader_done(&r);
}

static void every_length_is_read_byte_by_byte(void)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 127, 65535, 65536, LIMIT_WS_MESSAGE };
	static char data[LIMIT_WS_MESSAGE];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_WS_MESSAGE + 100);
		struct str text = { data, sizes[i] }, out;
		struct ws_reader r;
		int got = 0;

		memset(data, 'a' + (int)i, sizeof data);
		ws_reader_init(&r, true);
		CHECK(ws_put(&b, WS_BINARY, text, mask) == 0);
		for (size_t at = 0; at < b.len; at++) {
			struct str byte = { b.data + at, 1 };

			CHECK(got == 0);
			got = ws_reader_next(&r, &byte, &out);
		}
		CHECK(got == WS_BINARY && str_eq(out, text));
		ws_reader_done(&r);
	}
}

static void broken_frames_are_refused(void)
{
	static const struct {
		struct str in;
		int code;
	} rows[] = {
		{ STR("\xc1\x00"), WS_PROTOCOL_ERROR },		/* reserved bit */
		{ STR("\x83\x00"), WS_PROTOCOL_ERROR },		/* unknown opcode */
		{ STR("\x8b\x00"), WS_PROTOCOL_ERROR },		/* unknown control */
		{ STR("\x81\x80"), WS_PROTOCOL_ERROR },		/* masked by a server */
		{ STR("\x09\x00"), WS_PROTOCOL_ERROR },		/* control in pieces */
		{ STR("\x89\x7e"), WS_PROTOCOL_ERROR },		/* control too long */
		{ STR("\x80\x00"), WS_PROTOCOL_ERROR },		/* continues nothing */
		{ STR("\x01\x00\x01\x00"), WS_PROTOCOL_ERROR }, /* begins inside */
		{ STR("\x82\x7e\x00\x7d"), WS_PROTOCOL_ERROR }, /* length too long */
		{ STR("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), WS_PROTOCOL_ERROR },
		{ STR("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), WS_TOO_BIG },
		{ STR("\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x01"), WS_TOO_BIG },
		{ STR("\x81\x01\x80"), WS_NOT_UTF8 },
		{ STR("\x88\x01\x03"), WS_PROTOCOL_ERROR },
		{ STR("\x88\x02\x03\xed"), WS_PROTOCOL_ERROR }, /* 1005 */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str in = rows[i].in, out;
		struct ws_reader r;
		int got;

		ws_reader_init(&r, false);
		while ((got = ws_reader_next(&r, &in, &out)) > 0)
			;
		CHECK(got < 0 && r.code == rows[i].code && r.why);
		CHECK(ws_reader_next(&r, &in, &out) < 0); /* and stays so */
		ws_reader_done(&r);
	}
}

static void a_message_in_pieces_has_the_same_limit(void)
{
	static char data[LIMIT_WS_MESSAGE];
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_WS_MESSAGE);
	struct str in, out;
	struct ws_reader r;

	ws_reader_init(&r, false);
	CHECK(ws_put(&b, WS_BINARY, (struct str){ data, sizeof data }, NULL) == 0);
	b.data[0] = WS_BINARY; /* not the last */
	CHECK(buf_add(&b, "\x80\x01x", 3) == 0);
	in = buf_str(&b);
	CHECK(ws_reader_next(&r, &in, &out) == -E2BIG && r.code == WS_TOO_BIG);
	ws_reader_done(&r);
}

static void close_codes_are_checked(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(200);

	CHECK(ws_close_code(STR("")) == WS_NO_CODE);
	CHECK(ws_close_code(STR("\x03\xe8why")) == 1000);
	CHECK(ws_close_code(STR("\x0f\xa0")) == 4000);
	CHECK(ws_close_code(STR("\x03\xee")) == -EBADMSG); /* 1006 */
	CHECK(ws_close_code(STR("\x03\xe8\xff")) == -EBADMSG);
	CHECK(ws_put_close(&b, 1001, STR("x"), NULL) == 0);
	CHECK(str_eq(buf_str(&b), STR("\x88\x03\x03\xe9x")));
}

static void the_handshake_key_is_answered(void)
{
	char out[WS_ACCEPT];

	CHECK(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ=="), out) == 0);
	CHECK_STR(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	CHECK(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ"), out) == -EBADMSG);
	CHECK(ws_accept_key(STR("YQ=="), out) == -EBADMSG);
}

T_MAIN(T(the_example_of_the_rfc_is_read), T(control_frames_come_between_the_pieces_of_a_message),
       T(every_length_is_read_byte_by_byte), T(broken_frames_are_refused),
       T(a_message_in_pieces_has_the_same_limit), T(close_codes_are_checked),
       T(the_handshake_key_is_answered))
