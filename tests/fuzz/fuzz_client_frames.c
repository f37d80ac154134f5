/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a warden as the command line reads them: errors are filled whole, numbers are numbers.
 */
#include <string.h>

#include "fuzz.h"
#include "link/decode.h"

static void check_error(const struct frame *f)
{
	struct err e;

	memset(&e, 0xff, sizeof e);
	FUZZ_CHECK(frame_error(f, &e) == -1);
	FUZZ_CHECK(e.kind > ERR_NONE && e.kind < ERR_KIND_COUNT);
	FUZZ_CHECK(memchr(e.msg, '\0', sizeof e.msg) && memchr(e.hint, '\0', sizeof e.hint));
}

static void check_numbers(const struct frame *f)
{
	struct str body = f->body;
	struct field field;

	while (field_next(&body, &field) > 0) {
		uint64_t v = frame_number(f, field.tag, 12345);

		/* The first of a tag counts. */
		FUZZ_CHECK(v == frame_number(f, field.tag, 12345));
		FUZZ_CHECK(v == frame_number(f, field.tag, 54321) || v == 12345);
	}
	FUZZ_CHECK(frame_number(f, 0xfffe, 7) == 7 || f->body.n >= FIELD_HEADER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };
	struct frame f = { 0 };
	int64_t n;

	while ((n = frame_parse(in, &f)) > 0) {
		check_error(&f);
		check_numbers(&f);
		in.p += n;
		in.n -= (size_t)n;
	}
	return 0;
}
