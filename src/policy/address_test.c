/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/address.h"

#include "base/cleanup.h"
#include "t.h"

static struct ip ip(const char *text)
{
	struct ip r = { 0 };

	CHECK(ip_parse(str_of(text), &r) == 0);
	return r;
}

static void check_class(const char *const *rows, size_t n, enum address_class want)
{
	for (size_t i = 0; i < n; i++) {
		struct ip a = ip(rows[i]);

		if (address_classify(&a).class != want)
			t_fail_str(__FILE__, (int)i, rows[i], address_classify(&a).what);
	}
}

static void public_addresses_are_global(void)
{
	static const char *const rows[] = {
		"1.1.1.1",	   "8.8.8.8",	      "9.255.255.255",	 "11.0.0.0",
		"100.63.255.255",  "100.128.0.0",     "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "169.255.0.0",     "172.15.255.255",	 "172.32.0.0",
		"192.0.1.0",	   "192.167.255.255", "192.169.0.0",	 "198.17.255.255",
		"198.20.0.0",	   "203.0.112.255",   "203.0.114.0",	 "223.255.255.255",
		"2606:4700::1111", "2a00:1450::1",    "2001:200::1",	 "2003::1",
		"3ffe::1",	   "::ffff:8.8.8.8",  "2620:4e::1",	 "2001:db7:ffff::",
	};

	check_class(rows, ARRAY_LEN(rows), ADDRESS_GLOBAL);
}

static void addresses_that_no_rule_opens_are_never(void)
{
	static const char *const rows[] = {
		"0.0.0.0",
		"0.1.2.3",
		"127.0.0.1",
		"127.255.255.254",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::127.0.0.1",
		"::ffff:127.0.0.1",
		"::ffff:0.0.0.0",
		"::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1",
		"64:ff9b::7f00:1",
		"64:ff9b:1::127.0.0.1",
		"64:ff9b::0.0.0.0",
		"2002:7f00:1::",
		"2002:7f00:1::1",
		"2001::1",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2",
		"100::1",
		"ff02::1",
		"ff0e::1",
		"2001:10::1",
		"2001:20::1",
		"4000::1",
		"8000::",
		"e000::1",
		"::2",
		"1::1",
		"200::1",
	};

	check_class(rows, ARRAY_LEN(rows), ADDRESS_NEVER);
}

static void special_addresses_take_a_rule(void)
{
	static const char *const rows[] = {
		"10.0.0.1",	   "100.64.0.1",       "169.254.1.1",	    "172.16.0.1",
		"172.31.255.255",  "192.0.0.1",	       "192.0.2.1",	    "192.31.196.1",
		"192.52.193.1",	   "192.88.99.1",      "192.168.1.1",	    "192.175.48.1",
		"198.18.0.1",	   "198.19.255.255",   "198.51.100.1",	    "203.0.113.1",
		"::ffff:10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "2002:808:808::1",
		"2001:db8::1",	   "3fff::1",	       "5f00::1",	    "fc00::1",
		"fd12::1",	   "fe80::1",	       "fec0::1",	    "2001:2::1",
		"2001:4:112::1",   "2620:4f:8000::1",  "2001:3::1",	    "2001:1::1",
	};

	check_class(rows, ARRAY_LEN(rows), ADDRESS_SPECIAL);
}

static void metadata_services_are_known(void)
{
	static const char *const rows[] = {
		"169.254.169.254",	    "169.254.170.2",	 "169.254.170.23",
		"100.100.100.200",	    "192.0.0.192",	 "168.63.129.16",
		"::ffff:169.254.169.254",   "fd00:ec2::254",	 "fd20:ce::254",
		"64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1",
	};

	check_class(rows, ARRAY_LEN(rows), ADDRESS_METADATA);
}

static void ranges_open_what_they_name(void)
{
	static const struct {
		const char *ip, *range;
		bool opened;
	} rows[] = {
		{ "8.8.8.8", "8.8.8.0/24", true },
		{ "8.8.8.8", "0.0.0.0/0", true },
		{ "8.8.8.8", "9.0.0.0/8", false },
		{ "10.1.2.3", "10.0.0.0/8", true },
		{ "10.1.2.3", "10.1.2.3", true },
		{ "10.1.2.3", "0.0.0.0/0", false },
		{ "10.1.2.3", "8.0.0.0/6", false },
		{ "::ffff:10.1.2.3", "10.1.0.0/16", true },
		{ "127.0.0.1", "127.0.0.1", false },
		{ "127.0.0.1", "127.0.0.0/8", false },
		{ "127.0.0.1", "0.0.0.0/0", false },
		{ "169.254.1.1", "169.254.0.0/16", true },
		{ "169.254.169.254", "169.254.0.0/16", false },
		{ "169.254.169.254", "169.254.169.254", true },
		{ "fd12::1", "fd00::/8", true },
		{ "fd12::1", "::/0", false },
		{ "fd00:ec2::254", "fd00::/8", false },
		{ "::1", "::1", false },
		{ "64:ff9b::8.8.8.8", "64:ff9b::/96", true },
		{ "64:ff9b::127.0.0.1", "64:ff9b::/96", false },
		{ "64:ff9b::169.254.169.254", "64:ff9b::/96", false },
		{ "2606:4700::1", "::/0", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ip a = ip(rows[i].ip);
		struct cidr c;

		CHECK(cidr_parse(str_of(rows[i].range), &c) == 0);
		if (address_opened_by(&a, &c) != rows[i].opened)
			t_fail_str(__FILE__, (int)i, rows[i].ip, rows[i].range);
	}
}

T_MAIN(T(public_addresses_are_global), T(addresses_that_no_rule_opens_are_never),
       T(special_addresses_take_a_rule), T(metadata_services_are_known),
       T(ranges_open_what_they_name))
