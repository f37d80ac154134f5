/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/host.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

static void names_become_canonical(void)
{
	static const char *const rows[][2] = {
		{ "Example.COM", "example.com" },
		{ "example.com.", "example.com" },
		{ "a", "a" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "_dmarc.example", "_dmarc.example" },
		{ "1password.com", "1password.com" },
		{ "a.1x", "a.1x" },
		{ "0xg.b", "0xg.b" },
		{ "127.0.0.1.nip.io", "127.0.0.1.nip.io" },
	};
	char out[HOST_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(host_name(str_of(rows[i][0]), out) == 0);
		CHECK_STR(out, rows[i][1]);
	}
}

static void invalid_names_are_refused(void)
{
	static const char *const bad[] = {
		"",
		".",
		"..",
		"a..b",
		".a",
		"a b",
		"a@b",
		"user@host",
		"a%00.b",
		"a%2eb",
		"a/b",
		"a\\b",
		"a:80",
		"[::1]",
		"-a.b",
		"a-.b",
		"a.b-",
		"m\xc3\xbcnchen.de",
		"example.com..",
		"a\tb",
		"a\nb",
		"a,b",
		"a;b",
		"a?b",
		"a#b",
		"*.a",
		"\xe3\x80\x82",
		"a\x7f",
		"a'b",
		"\xef\xbc\x91.2.3.4",
	};
	char out[HOST_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(host_name(str_of(bad[i]), out) == -EINVAL);
		CHECK_STR(out, "");
	}
	CHECK(host_name((struct str){ "evil.com\0.ok.com", 16 }, out) == -EINVAL);
}

static void spellings_of_addresses_are_refused(void)
{
	static const char *const bad[] = {
		"127.1",
		"127.0.1",
		"2130706433",
		"0x7f000001",
		"0x7f.1",
		"0X7F.0.0.1",
		"0177.0.0.1",
		"017700000001",
		"1.2.3.4.",
		"1.2.3.4",
		"127.0.0.1.",
		"1",
		"0",
		"0x",
		"a.1",
		"foo.0x7f",
		"256.256.256.256",
		"127.0.0.01",
		"00000177.1",
		"a.0x",
	};
	char out[HOST_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(host_name(str_of(bad[i]), out) == -EADDRNOTAVAIL);
}

static void lengths_are_checked_at_the_limit_and_one_past_it(void)
{
	char label[65], name[300], out[HOST_TEXT];

	memset(label, 'a', 64);
	label[63] = '\0';
	CHECK(host_name(str_of(label), out) == 0);
	label[63] = 'a';
	label[64] = '\0';
	CHECK(host_name(str_of(label), out) == -EINVAL);

	memset(name, 'a', sizeof name);
	for (size_t i = 49; i < sizeof name; i += 50)
		name[i] = '.';
	CHECK(host_name((struct str){ name, 253 }, out) == 0);
	CHECK(strlen(out) == 253);
	CHECK(host_name((struct str){ name, 254 }, out) == -EINVAL);
}

static void hosts_are_names_or_addresses(void)
{
	struct host h;

	CHECK(host_parse(STR("Example.com."), &h) == 0 && h.ip.len == 0);
	CHECK_STR(h.name, "example.com");
	CHECK(host_parse(STR("10.0.0.1"), &h) == 0 && h.ip.len == 4 && h.name[0] == '\0');
	CHECK(host_parse(STR("[2001:db8::1]"), &h) == 0 && h.ip.len == 16);
	CHECK(host_parse(STR("2001:db8::1"), &h) == -EINVAL);
	CHECK(host_parse(STR("[10.0.0.1]"), &h) == -EINVAL);
	CHECK(host_parse(STR("[::1"), &h) == -EINVAL);
	CHECK(host_parse(STR("[fe80::1%25eth0]"), &h) == -EINVAL);
	CHECK(host_parse(STR("[v1.a]"), &h) == -EINVAL);
	CHECK(host_parse(STR("10.0.0.1."), &h) == -EADDRNOTAVAIL);
}

static void authorities_are_split(void)
{
	static const struct {
		const char *text;
		int ret;
		unsigned port;
		const char *host;
	} rows[] = {
		{ "a.b", 0, 0, "a.b" },
		{ "a.b:80", 0, 80, "a.b" },
		{ "[::1]:443", 0, 443, "::1" },
		{ "[::1]", 0, 0, "::1" },
		{ "1.2.3.4:65535", 0, 65535, "1.2.3.4" },
		{ "a.b:", -EINVAL, 0, "" },
		{ "a.b:0", -EINVAL, 0, "" },
		{ "a.b:65536", -EINVAL, 0, "" },
		{ "a.b:080", -EINVAL, 0, "" },
		{ "a.b:+80", -EINVAL, 0, "" },
		{ "a.b: 80", -EINVAL, 0, "" },
		{ "a.b:80:80", -EINVAL, 0, "" },
		{ "u:p@a.b:80", -EINVAL, 0, "" },
		{ "u@a.b", -EINVAL, 0, "" },
		{ "::1:80", -EINVAL, 0, "" },
		{ "[::1]x:80", -EINVAL, 0, "" },
		{ ":80", -EINVAL, 0, "" },
		{ "", -EINVAL, 0, "" },
		{ "0x7f.1:80", -EADDRNOTAVAIL, 0, "" },
	};
	char text[HOST_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host h = { 0 };
		uint16_t port = 0;

		CHECK(authority_parse(str_of(rows[i].text), &h, &port) == rows[i].ret);
		host_text(&h, text);
		CHECK_STR(text, rows[i].host);
		CHECK(port == rows[i].port);
	}
}

static void origins_are_a_scheme_and_an_authority(void)
{
	static const char *const bad[] = { "",
					   "null",
					   "http:/a.b",
					   "http://",
					   "ftp://a.b",
					   "http://a.b/",
					   "http://a.b?",
					   "http://u@a.b",
					   "http://a.b http://c.d",
					   "HTTP://a.b",
					   "a.b" };
	struct host h = { 0 }, other = { 0 };
	uint16_t port = 0;

	CHECK(origin_parse(STR("http://A.b"), &h, &port) == 0 && port == 80);
	CHECK_STR(h.name, "a.b");
	CHECK(origin_parse(STR("https://a.b"), &other, &port) == 0 && port == 443);
	CHECK(host_eq(&h, &other));
	CHECK(origin_parse(STR("https://[::1]:8443"), &other, &port) == 0 && port == 8443);
	CHECK(other.ip.len == 16 && !host_eq(&h, &other) && host_eq(&other, &other));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(origin_parse(str_of(bad[i]), &other, &port) == -EINVAL);
}

T_MAIN(T(names_become_canonical), T(invalid_names_are_refused),
       T(spellings_of_addresses_are_refused), T(lengths_are_checked_at_the_limit_and_one_past_it),
       T(hosts_are_names_or_addresses), T(authorities_are_split),
       T(origins_are_a_scheme_and_an_authority))
