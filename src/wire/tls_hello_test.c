/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tls_hello.h"

#include <errno.h>

#include "base/limits.h"
#include "wire/hello_build.h"

enum { BIG = 1 << 20, ONE_RECORD = 16384 };

static const struct str alpn = STR("\0\x0f\2\x0a\x0a\2h2\x08http/1.1");
static const struct str versions = STR("\6\x3a\x3a\3\4\3\3");

static struct buf exts = BUF_INIT(BIG), message = BUF_INIT(BIG), wire = BUF_INIT(BIG);

static int64_t parse(size_t record, struct tls_hello *h)
{
	put_hello(&message, &exts);
	put_records(&wire, buf_str(&message), record);
	return tls_hello_parse(buf_str(&wire), h);
}

static void common_extensions_are_accepted(void)
{
	put_ext(&exts, 0x2a2a, STR_NONE);
	put_sni(&exts, STR("Example.COM"));
	put_ext(&exts, 16, alpn);
	put_ext(&exts, 43, versions);
	put_ext(&exts, 0x1a1a, STR("\0"));
}

static void a_hello_yields_name_protocols_and_version(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	CHECK(parse(ONE_RECORD, &h) == (int64_t)wire.len);
	CHECK(h.has_sni && !h.ech && h.version == 0x0304);
	CHECK_STR(h.sni, "example.com");
	CHECK_STR(h.alpn, "h2,http/1.1");
	CHECK_STR(tls_version_text(h.version), "TLS 1.3");
}

static void a_hello_may_be_split_into_records_anywhere(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	put_hello(&message, &exts);
	for (size_t size = 1; size <= message.len; size++) {
		buf_clear(&wire);
		put_records(&wire, buf_str(&message), size);
		CHECK(tls_hello_parse(buf_str(&wire), &h) == (int64_t)wire.len);
		CHECK_STR(h.sni, "example.com");
	}
}

static void every_prefix_needs_more_input(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	CHECK(parse(50, &h) > 0);
	for (size_t n = 0; n < wire.len; n++)
		CHECK(tls_hello_parse((struct str){ wire.data, n }, &h) == 0);
}

static void bytes_after_the_hello_are_left_alone(void)
{
	struct tls_hello h;
	size_t n;

	common_extensions_are_accepted();
	CHECK(parse(ONE_RECORD, &h) > 0);
	n = wire.len;
	put(&wire, "\x17\x03\x03\0\1x", 6);
	CHECK(tls_hello_parse(buf_str(&wire), &h) == (int64_t)n);
}

static void without_extensions_there_is_no_name(void)
{
	struct tls_hello h;

	put_hello(&message, NULL);
	put_records(&wire, buf_str(&message), ONE_RECORD);
	CHECK(tls_hello_parse(buf_str(&wire), &h) > 0);
	CHECK(!h.has_sni && h.version == 0x0303 && h.alpn[0] == '\0');
}

static void an_encrypted_hello_is_detected(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	put_ext(&exts, 0xfe0d, STR("\0"));
	CHECK(parse(ONE_RECORD, &h) > 0 && h.ech);
}

static void refused(void)
{
	struct tls_hello h;

	CHECK(parse(ONE_RECORD, &h) == -EBADMSG && h.why);
	buf_clear(&exts);
	buf_clear(&message);
	buf_clear(&wire);
}

static void invalid_server_names_are_refused(void)
{
	static const struct str bad[] = { STR(""),
					  STR("a b"),
					  STR("a\0b.com"),
					  STR("1.2.3.4"),
					  STR("127.1"),
					  STR("example.com."),
					  STR("[::1]"),
					  STR("a@b.com"),
					  STR("b\xc3\xbc.de"),
					  STR("*.example.com") };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_sni(&exts, bad[i]);
		refused();
	}
}

static void repeated_and_malformed_extensions_are_refused(void)
{
	common_extensions_are_accepted();
	put_sni(&exts, STR("other.com"));
	refused();
	put_ext(&exts, 5, STR_NONE);
	put_ext(&exts, 5, STR_NONE);
	refused();
	put_ext(&exts, 0, STR("\0\x0c\0\0\3a.b\0\0\3c.d")); /* two names */
	refused();
	put_ext(&exts, 0, STR("\0\6\1\0\3a.b")); /* another type */
	refused();
	put_ext(&exts, 0, STR("\0\6\0\0\3a.bx")); /* trailing byte */
	refused();
	put_ext(&exts, 0, STR_NONE);
	refused();
	put_ext(&exts, 16, STR("\0\3\0h2"));
	refused();
	put_ext(&exts, 43, STR("\3\3\4\3"));
	refused();
	put_u16(&exts, 77);
	put_u16(&exts, 5);
	refused();
}

static void trailing_bytes_in_the_record_are_refused(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	put_hello(&message, &exts);
	put(&message, "x", 1);
	put_records(&wire, buf_str(&message), ONE_RECORD);
	CHECK(tls_hello_parse(buf_str(&wire), &h) == -EBADMSG);
}

static void another_record_in_between_is_refused(void)
{
	struct tls_hello h;

	common_extensions_are_accepted();
	put_hello(&message, &exts);
	put_records(&wire, (struct str){ message.data, 20 }, ONE_RECORD);
	put(&wire, "\x15\x03\x01\0\2\1\0", 7);
	put_records(&wire, (struct str){ message.data + 20, message.len - 20 }, ONE_RECORD);
	CHECK(tls_hello_parse(buf_str(&wire), &h) == -EBADMSG);
}

static void input_other_than_tls_is_reported(void)
{
	struct tls_hello h;

	CHECK(tls_hello_parse(STR("GET / HTTP/1.1\r\n"), &h) == -EPROTO);
	CHECK(tls_hello_parse(STR("\x80\x2e\1\3\1"), &h) == -EPROTO); /* SSL 2 */
	CHECK(tls_hello_parse(STR("\x16\x02"), &h) == -EPROTO);
	CHECK(tls_hello_parse(STR("\x16\3\1\0\0"), &h) == -EBADMSG);
	CHECK(tls_hello_parse(STR("\x16\3\1\x40\1"), &h) == -EBADMSG);
	CHECK(tls_hello_parse(STR("\x16\3\1\0\1\2"), &h) == -EBADMSG);
}

/* Parse a hello whose message has exactly n bytes. */
static int64_t parse_of_size(size_t n)
{
	struct tls_hello h;
	size_t empty;
	char *padding = calloc(1, n);

	put_hello(&message, &exts);
	empty = message.len + 4;
	buf_clear(&message);
	put_ext(&exts, 21, (struct str){ padding, n - empty });
	free(padding);
	return parse(4000, &h);
}

static void the_limit_holds(void)
{
	CHECK(parse_of_size(LIMIT_TLS_HELLO) == (int64_t)wire.len);
}

static void one_past_the_limit_is_refused(void)
{
	CHECK(parse_of_size(LIMIT_TLS_HELLO + 1) == -E2BIG);
}

T_MAIN(T(a_hello_yields_name_protocols_and_version), T(a_hello_may_be_split_into_records_anywhere),
       T(every_prefix_needs_more_input), T(bytes_after_the_hello_are_left_alone),
       T(without_extensions_there_is_no_name), T(an_encrypted_hello_is_detected),
       T(invalid_server_names_are_refused), T(repeated_and_malformed_extensions_are_refused),
       T(trailing_bytes_in_the_record_are_refused), T(another_record_in_between_is_refused),
       T(input_other_than_tls_is_reported), T(the_limit_holds), T(one_past_the_limit_is_refused))
