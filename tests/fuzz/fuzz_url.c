/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs and other small texts of requests: views lie in the input, what is written is read back, and
 * a path that passes the check has no way out.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/cookie.h"
#include "wire/host.h"
#include "wire/http_range.h"
#include "wire/sse_write.h"
#include "wire/url.h"

enum { MOST = 1 << 20 };

static bool lies_in(struct str part, struct str all)
{
	return part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n);
}

static void check_path(struct str in)
{
	struct str rest = in, segment;

	if (url_path_check(in) < 0)
		return;
	while (url_segment_next(&rest, &segment)) {
		auto_done(buf_done) struct buf b = BUF_INIT(MOST);

		FUZZ_CHECK(lies_in(segment, in) && url_decode(&b, segment, URL_SLASH) == 0);
		FUZZ_CHECK(!str_is(buf_str(&b), ".") && !str_is(buf_str(&b), ".."));
		FUZZ_CHECK(str_is_text(buf_str(&b)));
	}
}

static void check_query(struct str in)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	struct str rest = in, name, value;
	size_t found = 0;
	int r;

	while (url_query_next(&rest, &name, &value)) {
		FUZZ_CHECK(lies_in(name, in) && lies_in(value, in));
		found += str_is(name, "a");
	}
	r = url_query_get(in, "a", &b);
	FUZZ_CHECK(r < 0 || (size_t)r >= found);
	FUZZ_CHECK(r > 0 || b.len == 0);
}

static void check_codec(struct str in)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST), back = BUF_INIT(MOST);
	struct url u;

	FUZZ_CHECK(url_encode(&b, in) == 0);
	FUZZ_CHECK(url_decode(&back, buf_str(&b), URL_SLASH) == 0 ? str_eq(buf_str(&back), in)
								  : !str_is_text(in));
	if (url_parse(in, &u) == 0)
		FUZZ_CHECK(lies_in(u.authority, in) && u.target.p[0] == '/' && u.port);
}

static void check_values(struct str in)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	uint64_t from = 0, n = 0;
	struct str value;

	if (http_range_parse(in, 1000, &from, &n) == 1)
		FUZZ_CHECK(n > 0 && from < 1000 && n <= 1000 - from);
	if (cookie_get(in, "a", &value) == 1) {
		struct cookie c = { .name = "a", .value = value };

		FUZZ_CHECK(lies_in(value, in) && cookie_put(&b, &c) == 0);
		FUZZ_CHECK(!memchr(b.data, '\n', b.len) && !memchr(b.data, '\r', b.len));
	}
	buf_clear(&b);
	if (sse_put(&b, STR("e"), STR(""), in) == 0)
		FUZZ_CHECK(!memchr(b.data, '\r', b.len) &&
			   memcmp(b.data + b.len - 2, "\n\n", 2) == 0);
}

/* An origin is what its host and port say, whichever way it was written. */
static void check_origin(struct str in)
{
	struct host h = { 0 }, again = { 0 };
	uint16_t port = 0, port_again = 0;
	char text[HOST_TEXT], full[HOST_TEXT + 32];

	if (origin_parse(in, &h, &port) < 0)
		return;
	FUZZ_CHECK(port != 0 && (h.ip.len == 0) == (h.name[0] != '\0'));
	host_text(&h, text);
	(void)snprintf(full, sizeof full, h.ip.len == 16 ? "http://[%s]:%u" : "http://%s:%u", text,
		       port);
	FUZZ_CHECK(origin_parse(str_of(full), &again, &port_again) == 0);
	FUZZ_CHECK(port == port_again && host_eq(&h, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size };

	if (size > 4096)
		return 0;
	check_path(in);
	check_query(in);
	check_codec(in);
	check_values(in);
	check_origin(in);
	return 0;
}
