/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ip.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

static struct ip ip(const char *text)
{
	struct ip r = { 0 };

	CHECK(ip_parse(str_of(text), &r) == 0);
	return r;
}

static struct cidr cidr(const char *text)
{
	struct cidr r;

	CHECK(cidr_parse(str_of(text), &r) == 0);
	return r;
}

static void addresses_round_trip(void)
{
	static const char *const rows[][2] = {
		{ "1.2.3.4", "1.2.3.4" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "2001:DB8::0:1", "2001:db8::1" },
		{ "::", "::" },
		{ "::ffff:1.2.3.4", "::ffff:1.2.3.4" },
		{ "fe80::1", "fe80::1" },
	};
	char text[IP_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ip a = ip(rows[i][0]);

		ip_text(&a, text);
		CHECK_STR(text, rows[i][1]);
	}
}

static void other_spellings_are_not_addresses(void)
{
	static const char *const bad[] = {
		"",	      "1",	    "127.1",	  "1.2.3",	"1.2.3.4.5",  "01.2.3.4",
		"0x7f.0.0.1", "1.2.3.256",  "1.2.3.4 ",	  " 1.2.3.4",	"1.2.3.4.",   "+1.2.3.4",
		"[::1]",      "fe80::1%lo", ":::",	  "1::2::3",	"12345::",    "::1.2.3",
		"::g",	      "1.2.3.4/8",  "1.2.3.4:80", "2130706433", "0177.0.0.1", "1..2.3",
	};
	struct ip r;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(ip_parse(str_of(bad[i]), &r) == -EINVAL);
	CHECK(ip_parse((struct str){ "1.2.3.4\0", 8 }, &r) == -EINVAL);
	CHECK(ip_parse((struct str){ "1.2.3.4567", 7 }, &r) == 0);
}

static void mapped_addresses_become_plain(void)
{
	struct ip mapped = ip("::ffff:127.0.0.1"), v4 = ip("127.0.0.1"), v6 = ip("::1");
	struct ip plain = ip_plain(mapped), same = ip_plain(v6);

	CHECK(ip_eq(&plain, &v4) && !ip_eq(&mapped, &v4));
	CHECK(ip_eq(&same, &v6));
}

static void sockaddrs_round_trip(void)
{
	static const char *const rows[] = { "10.1.2.3", "2001:db8::7" };
	struct sockaddr_storage ss;
	uint16_t port = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ip a = ip(rows[i]), b;

		CHECK(ip_to_sockaddr(&a, 443, &ss) > 0);
		b = ip_of_sockaddr((struct sockaddr *)&ss, &port);
		CHECK(ip_eq(&a, &b) && port == 443);
	}
	ss.ss_family = AF_UNIX;
	CHECK(ip_of_sockaddr((struct sockaddr *)&ss, &port).len == 0);
	CHECK(ip_to_sockaddr(&(struct ip){ 0 }, 1, &ss) == 0);
}

static void ranges_contain_their_addresses(void)
{
	static const struct {
		const char *range, *in, *out;
	} rows[] = {
		{ "10.0.0.0/8", "10.255.0.1", "11.0.0.0" },
		{ "100.64.0.0/10", "100.127.255.255", "100.128.0.0" },
		{ "0.0.0.0/0", "255.1.2.3", "::1" },
		{ "192.0.2.7", "192.0.2.7", "192.0.2.6" },
		{ "fc00::/7", "fdff::1", "fe00::" },
		{ "::/0", "2001::", "1.2.3.4" },
		{ "2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::" },
		{ "1.2.3.4/31", "1.2.3.5", "1.2.3.6" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cidr c = cidr(rows[i].range);
		struct ip in = ip(rows[i].in), out = ip(rows[i].out);

		CHECK(cidr_has(&c, &in));
		CHECK(!cidr_has(&c, &out));
	}
}

static void malformed_ranges_are_refused(void)
{
	static const char *const bad[] = { "10.0.0.0/33", "::/129",	  "10.0.0.0/",
					   "10.0.0.0/-1", "10.0.0.0/08",  "10/8",
					   "/8",	  "10.0.0.0/8/8", "" };
	struct cidr c;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(cidr_parse(str_of(bad[i]), &c) == -EINVAL);
	CHECK(cidr_parse(STR("10.0.0.1/8"), &c) == -ERANGE);
	CHECK(cidr_parse(STR("2001:db8::1/64"), &c) == -ERANGE);
}

static void a_range_within_another_is_recognised(void)
{
	struct cidr ten = cidr("10.0.0.0/8"), part = cidr("10.1.0.0/16"), all = cidr("0.0.0.0/0");

	CHECK(cidr_within(&part, &ten) && cidr_within(&ten, &ten) && cidr_within(&ten, &all));
	CHECK(!cidr_within(&ten, &part) && !cidr_within(&all, &ten));
}

T_MAIN(T(addresses_round_trip), T(other_spellings_are_not_addresses),
       T(mapped_addresses_become_plain), T(sockaddrs_round_trip), T(ranges_contain_their_addresses),
       T(malformed_ranges_are_refused), T(a_range_within_another_is_recognised))
