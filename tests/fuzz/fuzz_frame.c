/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and fields from a hostile peer: nothing outside the input is touched, limits hold,
 * and what was understood can be written again to the same bytes.
 */
#include <string.h>

#include "base/limits.h"
#include "fuzz.h"
#include "wire/frame.h"

static void check_fields(struct str body)
{
	auto_done(buf_done) struct buf again = BUF_INIT(LIMIT_FRAME_BODY);
	struct str rest = body;
	struct field f;
	uint64_t v;
	int r;

	while ((r = field_next(&rest, &f)) == 1) {
		FUZZ_CHECK(f.value.p >= body.p && f.value.p + f.value.n <= body.p + body.n);
		FUZZ_CHECK((field_u64(f, &v) == 0) == (f.value.n == 8));
		FUZZ_CHECK(field_put(&again, f.tag, f.value) == 0);
	}
	FUZZ_CHECK(r < 0 || rest.n == 0);
	FUZZ_CHECK(again.len == body.n - rest.n);
	FUZZ_CHECK(again.len == 0 || memcmp(again.data, body.p, again.len) == 0);
}

static void check_frame(struct str in, const struct frame *f, int64_t taken)
{
	auto_done(buf_done) struct buf again = BUF_INIT(LIMIT_FRAME_BODY + FRAME_HEADER);
	size_t at = 0;

	FUZZ_CHECK((uint64_t)taken <= in.n && f->body.n == (size_t)taken - FRAME_HEADER);
	FUZZ_CHECK(f->body.n <= LIMIT_FRAME_BODY && f->nfds <= LIMIT_FRAME_FDS);
	FUZZ_CHECK(frame_begin(&again, f->type, f->chan, &at) == 0);
	FUZZ_CHECK(buf_add_str(&again, f->body) == 0);
	FUZZ_CHECK(frame_end(&again, at, f->nfds) == 0);
	FUZZ_CHECK(again.len == (size_t)taken && memcmp(again.data, in.p, again.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size };
	struct frame f = { 0 };
	int64_t n;

	while ((n = frame_parse(in, &f)) > 0) {
		check_frame(in, &f, n);
		check_fields(f.body);
		in.p += n;
		in.n -= (size_t)n;
	}
	check_fields((struct str){ copy, size < LIMIT_FRAME_BODY ? size : LIMIT_FRAME_BODY });
	return 0;
}
