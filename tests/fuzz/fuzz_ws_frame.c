/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames and Connect envelopes: the same messages, however the bytes arrive. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "wire/connect_envelope.h"
#include "wire/ws_frame.h"

enum { MOST = 4 << 20 };

static int follow(struct str in, bool masked, size_t step, struct buf *out)
{
	struct ws_reader reader;
	int r = 0;

	ws_reader_init(&reader, masked);
	while (in.n && r >= 0) {
		struct str piece = { in.p, in.n < step ? in.n : step }, data;

		in.p += piece.n;
		in.n -= piece.n;
		while ((r = ws_reader_next(&reader, &piece, &data)) > 0) {
			FUZZ_CHECK(r != WS_TEXT || utf8_valid(data));
			FUZZ_CHECK(r < WS_CLOSE || data.n <= WS_CONTROL);
			FUZZ_CHECK(buf_printf(out, "{%d:%zu}", r, data.n) == 0);
			FUZZ_CHECK(buf_add_str(out, data) == 0);
		}
		FUZZ_CHECK(r < 0 || piece.n == 0);
	}
	FUZZ_CHECK(r >= 0 || (reader.code && reader.why));
	ws_reader_done(&reader);
	return r;
}

static void check_frames(struct str in, bool masked)
{
	auto_done(buf_done) struct buf whole = BUF_INIT(MOST), bytes = BUF_INIT(MOST);
	int r = follow(in, masked, in.n ? in.n : 1, &whole);

	FUZZ_CHECK((r < 0) == (follow(in, masked, 1, &bytes) < 0));
	FUZZ_CHECK(str_eq(buf_str(&whole), buf_str(&bytes)));
}

/* What we write is one frame, and is read back. */
static void check_written(struct str in)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST), out = BUF_INIT(MOST);
	auto_done(buf_done) struct buf want = BUF_INIT(MOST);

	FUZZ_CHECK(ws_put(&b, WS_BINARY, in, (const unsigned char *)"abcd") == 0);
	FUZZ_CHECK(follow(buf_str(&b), true, b.len, &out) == 0);
	FUZZ_CHECK(buf_printf(&want, "{%d:%zu}", WS_BINARY, in.n) == 0);
	FUZZ_CHECK(buf_add_str(&want, in) == 0 && str_eq(buf_str(&want), buf_str(&out)));
}

static void check_envelopes(struct str in)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	struct envelope e;
	int64_t n;

	while ((n = envelope_parse(in, 1000, &e)) > 0) {
		FUZZ_CHECK((size_t)n <= in.n && e.payload.n <= 1000);
		buf_clear(&b);
		FUZZ_CHECK(envelope_put(&b, e.flags, e.payload) == 0);
		FUZZ_CHECK(str_eq(buf_str(&b), (struct str){ in.p, (size_t)n }));
		in.p += n;
		in.n -= (size_t)n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size };
	char key[WS_ACCEPT];

	check_frames(in, true);
	check_frames(in, false);
	check_written(in);
	check_envelopes(in);
	(void)ws_accept_key(in, key);
	return 0;
}
