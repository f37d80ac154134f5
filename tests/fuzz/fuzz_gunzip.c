/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bodies: bounded, the same however they arrive, and what we write is read back. */
#include "base/cleanup.h"
#include "base/limits.h"
#include "fuzz.h"
#include "wire/gunzip.h"

enum { MOST = 8 << 20, BOUND = 1 << 20 };

static int follow(struct str in, size_t step, struct buf *out)
{
	struct gunzip g;
	int r = GUNZIP_MORE;

	FUZZ_CHECK(gunzip_init(&g, BOUND) == 0);
	while (in.n && r >= 0) {
		struct str piece = { in.p, in.n < step ? in.n : step }, data;

		in.p += piece.n;
		in.n -= piece.n;
		do {
			r = gunzip_next(&g, &piece, &data);
			if (r == GUNZIP_DATA)
				FUZZ_CHECK(buf_add_str(out, data) == 0);
		} while (r == GUNZIP_DATA || (r == GUNZIP_MORE && piece.n));
	}
	FUZZ_CHECK(out->len <= BOUND);
	gunzip_done(&g);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	auto_done(buf_done) struct buf whole = BUF_INIT(MOST), bytes = BUF_INIT(MOST);
	auto_done(buf_done) struct buf packed = BUF_INIT(MOST), back = BUF_INIT(MOST);
	struct str in = { copy, size };
	int r = follow(in, size ? size : 1, &whole);

	if (r != -E2BIG) { /* the ratio depends on how much came at once */
		int again = follow(in, 1, &bytes);

		FUZZ_CHECK(again == r || again == -E2BIG);
		FUZZ_CHECK(again < 0 || str_eq(buf_str(&whole), buf_str(&bytes)));
	}
	FUZZ_CHECK(gzip_put(&packed, in) == 0);
	r = follow(buf_str(&packed), packed.len, &back);
	FUZZ_CHECK(r == GUNZIP_END || r == -E2BIG);
	FUZZ_CHECK(r == -E2BIG || str_eq(buf_str(&back), in));
	return 0;
}
