/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gunzip.h"

#include <errno.h>

#include "base/limits.h"
#include "t.h"

/* Decodes in pieces of `step` bytes; returns the last result. */
static int decode(struct str in, uint64_t most, size_t step, struct buf *out)
{
	struct gunzip g;
	int r = GUNZIP_MORE;

	CHECK(gunzip_init(&g, most) == 0);
	while (in.n && r >= 0) {
		struct str piece = { in.p, in.n < step ? in.n : step }, data;

		in.p += piece.n;
		in.n -= piece.n;
		do {
			r = gunzip_next(&g, &piece, &data);
			if (r == GUNZIP_DATA)
				CHECK(buf_add_str(out, data) == 0);
		} while (r == GUNZIP_DATA || (r == GUNZIP_MORE && piece.n));
	}
	gunzip_done(&g);
	return r;
}

static void what_is_compressed_is_decoded(void)
{
	static char text[200000];
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * i >> 5);
	CHECK(gzip_put(&b, (struct str){ text, sizeof text }) == 0 && b.len < sizeof text);
	for (size_t step = 1; step < 100000; step = step * 7 + 1) {
		buf_clear(&out);
		CHECK(decode(buf_str(&b), 0, step, &out) == GUNZIP_END);
		CHECK(str_eq(buf_str(&out), (struct str){ text, sizeof text }));
	}
	buf_clear(&out);
	CHECK(decode((struct str){ b.data, b.len - 1 }, 0, 100, &out) == GUNZIP_MORE);
}

static void bombs_and_limits_are_refused(void)
{
	static char zeros[4 << 20];
	auto_done(buf_done) struct buf b = BUF_INIT(8 << 20), out = BUF_INIT(8 << 20);

	CHECK(gzip_put(&b, (struct str){ zeros, sizeof zeros }) == 0);
	CHECK(decode(buf_str(&b), 0, b.len, &out) == -E2BIG && out.len < sizeof zeros);
	buf_clear(&b);
	CHECK(gzip_put(&b, STR("hello")) == 0);
	buf_clear(&out);
	CHECK(decode(buf_str(&b), 5, 100, &out) == GUNZIP_END);
	CHECK(decode(buf_str(&b), 4, 100, &out) == -E2BIG);
}

static void other_bytes_are_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100), out = BUF_INIT(100);

	CHECK(decode(STR("hello hello hello"), 0, 100, &out) == -EBADMSG);
	CHECK(gzip_put(&b, STR("a")) == 0 && buf_add_c(&b, "x") == 0);
	CHECK(decode(buf_str(&b), 0, 100, &out) == -EBADMSG); /* bytes after the end */
	b.data[b.len - 5] ^= 1;				      /* the length at the end */
	CHECK(decode((struct str){ b.data, b.len - 1 }, 0, 100, &out) == -EBADMSG);
}

T_MAIN(T(what_is_compressed_is_decoded), T(bombs_and_limits_are_refused),
       T(other_bytes_are_refused))
