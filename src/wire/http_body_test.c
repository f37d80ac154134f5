/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "t.h"
#include "wire/http1.h"
#include "wire/http_write.h"

/* Parse the body in pieces of `step`. Returns the last result, the content and what was left. */
static int follow(const struct http_head *h, struct str in, size_t step, struct buf *ret,
		  size_t *ret_left)
{
	struct http_body b;
	size_t at = 0;
	int r = HTTP_MORE;

	http_body_init(&b, h);
	buf_clear(ret);
	while (r == HTTP_MORE && at < in.n) {
		struct str piece = { in.p + at, in.n - at < step ? in.n - at : step }, data;
		size_t before = piece.n;

		while ((r = http_body_next(&b, &piece, &data)) == HTTP_DATA)
			CHECK(buf_add_str(ret, data) == 0);
		at += before - piece.n;
	}
	*ret_left = in.n - at;
	if (r == HTTP_MORE)
		CHECK((http_body_eof(&b) == 0) == (h->framing == HTTP_BODY_CLOSE));
	return r;
}

static const struct http_head chunked = { .framing = HTTP_BODY_CHUNKED };
static struct buf out = BUF_INIT(1 << 20);

static void chunks_are_parsed_in_pieces_of_any_size(void)
{
	static const struct str in = STR("5\r\nhello\r\n00a;x=\"y\"\r\n, world!!!\r\n0\r\n"
					 "Trailer: x\r\n\r\nNEXT");
	size_t left;

	for (size_t step = 1; step <= in.n; step++) {
		CHECK(follow(&chunked, in, step, &out, &left) == HTTP_END);
		CHECK_STR(out.data, "hello, world!!!");
		CHECK(left == 4);
	}
}

static void a_body_ends_at_its_length(void)
{
	struct http_head five = { .framing = HTTP_BODY_LENGTH, .length = 5 };
	struct http_head zero = { .framing = HTTP_BODY_LENGTH };
	struct http_head close = { .framing = HTTP_BODY_CLOSE };
	struct str rest = STR("x"), data;
	struct http_body b;
	size_t left;

	CHECK(follow(&five, STR("helloNEXT"), 2, &out, &left) == HTTP_END && left == 4);
	CHECK_STR(out.data, "hello");
	CHECK(follow(&five, STR("hell"), 9, &out, &left) == HTTP_MORE);
	CHECK(follow(&close, STR("anything"), 3, &out, &left) == HTTP_MORE);
	CHECK_STR(out.data, "anything");
	http_body_init(&b, &zero);
	CHECK(http_body_next(&b, &rest, &data) == HTTP_END && rest.n == 1);
}

static void malformed_chunks_are_refused(void)
{
	static const struct str bad[] = {
		STR("\r\n"),
		STR("g\r\n"),
		STR("-1\r\n"),
		STR("+1\r\n"),
		STR("0x1\r\n"),
		STR(" 1\r\n"),
		STR("1 \r\nx\r\n"),
		STR("1\nx\r\n"),
		STR("1\rx"),
		STR("1\r\nxy\r\n"),
		STR("1\r\nx\n"),
		STR("1\r\nx\rx"),
		STR("1;a\nb\r\nx\r\n"),
		STR("1;a\0b\r\n"),
		STR(";a\r\n"),
		STR("1234567890abcdef0\r\n"),
		STR("0\r\n\n"),
		STR("0\r\nX\r\n\r\n"),
		STR("0\r\n: x\r\n\r\n"),
		STR("0\r\nX : y\r\n\r\n"),
		STR("0\r\n X: y\r\n\r\n"),
		STR("0\r\nX: a\rb\r\n"),
		STR("0\r\nX: a\nb\r\n"),
		STR("0\r\nX: a\0b\r\n"),
		STR("0\r\n\r\r\n"),
		STR("1,1\r\n"),
		STR("1\r\r\n"),
	};
	size_t left;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t step = 1; step < 40; step += 38)
			if (follow(&chunked, bad[i], step, &out, &left) != -EBADMSG)
				t_fail(__FILE__, (int)i, bad[i].p);
}

/* An extension or trailers of n bytes. */
static int with_filler(const char *before, size_t n, const char *after)
{
	struct buf b = BUF_INIT(1 << 20);
	size_t left;
	int r;

	CHECK(buf_add_c(&b, before) == 0);
	for (size_t i = 0; i < n; i++)
		CHECK(buf_add_c(&b, "x") == 0);
	CHECK(buf_add_c(&b, after) == 0);
	r = follow(&chunked, buf_str(&b), b.len, &out, &left);
	buf_done(&b);
	return r;
}

static void the_limit_passes_and_one_past_it_is_refused(void)
{
	/* The digit and the CR count too. */
	CHECK(with_filler("0;", LIMIT_HTTP_CHUNK_LINE - 2, "\r\n\r\n") == HTTP_END);
	CHECK(with_filler("0;", LIMIT_HTTP_CHUNK_LINE - 1, "\r\n\r\n") == -EBADMSG);
	CHECK(with_filler("0\r\nX:", LIMIT_HTTP_HEAD - 6, "\r\n\r\n") == HTTP_END);
	CHECK(with_filler("0\r\nX:", LIMIT_HTTP_HEAD - 5, "\r\n\r\n") == -EBADMSG);
}

static void nothing_follows_an_error(void)
{
	struct str in = STR("zz"), more = STR("5\r\nhello"), data;
	struct http_body b;

	http_body_init(&b, &chunked);
	CHECK(http_body_next(&b, &in, &data) == -EBADMSG && b.why);
	CHECK(http_body_next(&b, &more, &data) == -EBADMSG);
}

static void written_messages_can_be_parsed(void)
{
	struct buf b = BUF_INIT(4096);
	struct http_head h;
	int64_t n;
	size_t left;

	CHECK(http_put_answer(&b, 403, "application/json", STR("{}"), true) == 0);
	n = http_response_parse(buf_str(&b), STR("GET"), &h);
	CHECK(n > 0 && h.status == 403 && h.length == 2 && !h.keep_alive);
	CHECK(str_is(h.reason, "Forbidden"));
	buf_clear(&b);
	CHECK(http_put_chunk(&b, STR("hello")) == 0 && http_put_chunk(&b, STR_NONE) == 0);
	CHECK(http_put_last_chunk(&b) == 0);
	CHECK(follow(&chunked, buf_str(&b), 3, &out, &left) == HTTP_END && left == 0);
	CHECK_STR(out.data, "hello");
	buf_clear(&b);
	CHECK(http_put_request(&b, STR("GET"), STR("/x")) == 0);
	CHECK(http_put_header(&b, "Host", STR("a.b")) == 0 && http_put_end(&b) == 0);
	CHECK(http_request_parse(buf_str(&b), &h) == (int64_t)b.len);
	buf_done(&b);
}

static void line_breaks_in_a_header_are_refused(void)
{
	struct buf b = BUF_INIT(4096);

	CHECK(http_put_header(&b, "X", STR("a\r\nY: b")) == -EINVAL);
	CHECK(http_put_header(&b, "X", STR("a\0b")) == -EINVAL);
	CHECK(http_put_header(&b, "X Y", STR("a")) == -EINVAL);
	CHECK(http_put_request(&b, STR("GET"), STR("/ HTTP/1.1")) == -EINVAL);
	CHECK(http_put_request(&b, STR("G T"), STR("/")) == -EINVAL);
	CHECK(b.len == 0);
}

T_MAIN(T(chunks_are_parsed_in_pieces_of_any_size), T(a_body_ends_at_its_length),
       T(malformed_chunks_are_refused), T(the_limit_passes_and_one_past_it_is_refused),
       T(nothing_follows_an_error), T(written_messages_can_be_parsed),
       T(line_breaks_in_a_header_are_refused))
