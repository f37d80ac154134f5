/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sse_write.h"

#include <errno.h>

#include "t.h"

static void every_line_of_data_is_a_field(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(400);

	CHECK(sse_put(&b, STR(""), STR(""), STR("one")) == 0);
	CHECK(str_is(buf_str(&b), "data: one\n\n"));
	buf_clear(&b);
	CHECK(sse_put(&b, STR("e"), STR("7"), STR("a\nb\r\nc\rd\n")) == 0);
	CHECK(str_is(buf_str(&b),
		     "event: e\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"));
	buf_clear(&b);
	CHECK(sse_put(&b, STR(""), STR(""), STR("")) == 0 && str_is(buf_str(&b), "data: \n\n"));
	buf_clear(&b);
	CHECK(sse_put_comment(&b, STR("hi")) == 0 && str_is(buf_str(&b), ": hi\n\n"));
}

static void names_cannot_end_a_line(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(40);

	CHECK(sse_put(&b, STR("a\nb"), STR(""), STR("")) == -EINVAL);
	CHECK(sse_put(&b, STR(""), STR("a\rb"), STR("")) == -EINVAL);
	CHECK(sse_put(&b, STR(""), STR("a\0b"), STR("")) == -EINVAL);
	CHECK(sse_put_comment(&b, STR("\n")) == -EINVAL);
	CHECK(sse_put(&b, STR("event"), STR(""), STR("longer than the buffer can hold")) == -E2BIG);
	CHECK(b.len == 0);
}

T_MAIN(T(every_line_of_data_is_a_field), T(names_cannot_end_a_line))
