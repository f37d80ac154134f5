/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http_range.h"

#include <errno.h>

#include "t.h"

static void ranges_follow_the_rfc(void)
{
	static const struct {
		const char *value;
		uint64_t size;
		int result;
		uint64_t from, n;
	} rows[] = {
		{ "bytes=0-0", 10, 1, 0, 1 },
		{ "bytes=2-5", 10, 1, 2, 4 },
		{ "bytes=2-", 10, 1, 2, 8 },
		{ "bytes=2-99", 10, 1, 2, 8 },
		{ "Bytes=9-9", 10, 1, 9, 1 },
		{ "bytes=-3", 10, 1, 7, 3 },
		{ "bytes=-30", 10, 1, 0, 10 },
		{ "bytes=10-", 10, -ERANGE, 0, 0 },
		{ "bytes=0-", 0, -ERANGE, 0, 0 },
		{ "bytes=-0", 10, -ERANGE, 0, 0 },
		{ "bytes=-1", 0, -ERANGE, 0, 0 },
		/* ignored */
		{ "bytes=5-2", 10, 0, 0, 0 },
		{ "bytes=0-1,3-4", 10, 0, 0, 0 },
		{ "items=0-1", 10, 0, 0, 0 },
		{ "bytes=", 10, 0, 0, 0 },
		{ "bytes=a-b", 10, 0, 0, 0 },
		{ "bytes=1", 10, 0, 0, 0 },
		{ "bytes=0 - 1", 10, 0, 0, 0 },
		{ "bytes=9999999999999999999-", 10, 0, 0, 0 },
		{ "bytes=--1", 10, 0, 0, 0 },
		{ "", 10, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t from = 0, n = 0;

		CHECK(http_range_parse(str_of(rows[i].value), rows[i].size, &from, &n) ==
		      rows[i].result);
		CHECK(from == rows[i].from && n == rows[i].n);
	}
}

static void the_answer_names_the_range(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	CHECK(http_range_put(&b, 2, 4, 10) == 0 && str_is(buf_str(&b), "bytes 2-5/10"));
	buf_clear(&b);
	CHECK(http_range_put(&b, 0, 0, 10) == 0 && str_is(buf_str(&b), "bytes */10"));
}

T_MAIN(T(ranges_follow_the_rfc), T(the_answer_names_the_range))
