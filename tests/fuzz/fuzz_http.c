/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP messages, requests and responses: views lie in the input, a head is whole only at its
 * last byte, and a body is the same however it arrives.
 */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/http1.h"

enum { BODY_MAX = 1 << 20 };

static bool lies_in(struct str part, struct str all)
{
	return part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n);
}

static bool is_static_root(struct str path)
{
	return str_is(path, "/");
}

static void check_head(const struct http_head *h, struct str head)
{
	char again[HOST_TEXT];

	FUZZ_CHECK(h->n <= LIMIT_HTTP_HEADERS);
	FUZZ_CHECK(lies_in(h->method, head) && lies_in(h->target, head) && lies_in(h->query, head));
	FUZZ_CHECK(lies_in(h->path, head) || is_static_root(h->path));
	for (size_t i = 0; i < h->n; i++) {
		FUZZ_CHECK(h->headers[i].name.n > 0);
		FUZZ_CHECK(lies_in(h->headers[i].name, head) && lies_in(h->headers[i].value, head));
		FUZZ_CHECK(!memchr(h->headers[i].name.p, '\n', h->headers[i].name.n));
	}
	if (h->host.name[0])
		FUZZ_CHECK(host_name(str_of(h->host.name), again) == 0 &&
			   strcmp(again, h->host.name) == 0);
}

/* The last event; what is used of the input, and the content. */
static int follow(const struct http_head *h, struct str in, size_t step, size_t *ret_used,
		  struct buf *content)
{
	struct http_body b;
	size_t used = 0;
	int r = HTTP_MORE;

	http_body_init(&b, h);
	do {
		struct str piece = { in.p + used, in.n - used < step ? in.n - used : step }, data;
		size_t before = piece.n;

		while ((r = http_body_next(&b, &piece, &data)) == HTTP_DATA)
			FUZZ_CHECK(buf_add_str(content, data) == 0);
		used += before - piece.n;
	} while (r == HTTP_MORE && used < in.n);
	*ret_used = used;
	return r;
}

static void check_body(const struct http_head *h, struct str rest)
{
	auto_done(buf_done) struct buf whole = BUF_INIT(BODY_MAX), bytes = BUF_INIT(BODY_MAX);
	size_t at_once = 0, by_byte = 0;
	int r = follow(h, rest, rest.n ? rest.n : 1, &at_once, &whole);

	FUZZ_CHECK(follow(h, rest, 1, &by_byte, &bytes) == r);
	FUZZ_CHECK(at_once == by_byte && str_eq(buf_str(&whole), buf_str(&bytes)));
	FUZZ_CHECK(at_once <= rest.n);
}

static int64_t parse(bool request, struct str in, struct http_head *h)
{
	return request ? http_request_parse(in, h) : http_response_parse(in, STR("GET"), h);
}

static void check(bool request, struct str in)
{
	struct http_head h, part;
	int64_t n = parse(request, in, &h);

	if (n <= 0) {
		FUZZ_CHECK(n == 0 || h.why);
		return;
	}
	FUZZ_CHECK((size_t)n <= in.n && n <= LIMIT_HTTP_HEAD);
	check_head(&h, (struct str){ in.p, (size_t)n });
	for (size_t cut = 0; cut < (size_t)n; cut += 1 + (size_t)n / 16)
		FUZZ_CHECK(parse(request, (struct str){ in.p, cut }, &part) == 0);
	check_body(&h, (struct str){ in.p + n, in.n - (size_t)n });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct http_head chunked = { .framing = HTTP_BODY_CHUNKED };

	check(true, (struct str){ copy, size });
	check(false, (struct str){ copy, size });
	check_body(&chunked, (struct str){ copy, size });
	return 0;
}
