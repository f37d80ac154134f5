/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/addresses.h"

#include "base/netplan.h"
#include "t.h"

static struct addresses addresses;

static void a_name_has_one_address_of_each_family_and_they_lead_back(void)
{
	struct ip a4, a6, b4, b6, again4, again6;

	CHECK(addresses_give(&addresses, "a.test", &a4, &a6) == 0);
	CHECK(addresses_give(&addresses, "b.test", &b4, &b6) == 0);
	CHECK(addresses_give(&addresses, "a.test", &again4, &again6) == 0);
	CHECK(a4.len == 4 && a6.len == 16 && ip_eq(&a4, &again4) && ip_eq(&a6, &again6));
	CHECK(!ip_eq(&a4, &b4) && !ip_eq(&a6, &b6));
	CHECK_STR(addresses_find(&addresses, &a4), "a.test");
	CHECK_STR(addresses_find(&addresses, &a6), "a.test");
	CHECK_STR(addresses_find(&addresses, &b6), "b.test");
	addresses_done(&addresses);
}

static void other_addresses_lead_nowhere(void)
{
	struct ip ip, a4, a6;

	CHECK(addresses_give(&addresses, "a.test", &a4, &a6) == 0);
	CHECK(ip_parse(STR("198.18.0.1"), &ip) == 0 && !addresses_has(&ip) &&
	      !addresses_find(&addresses, &ip));
	CHECK(ip_parse(STR("198.20.0.0"), &ip) == 0 && !addresses_has(&ip));
	CHECK(ip_parse(STR("127.0.0.1"), &ip) == 0 && !addresses_has(&ip));
	CHECK(ip_parse(STR("fdca:7a1e:c0de::1"), &ip) == 0 && !addresses_has(&ip));
	CHECK(ip_parse(STR("198.18.1.9"), &ip) == 0 && addresses_has(&ip) &&
	      !addresses_find(&addresses, &ip));
	CHECK(ip_parse(STR("198.19.255.255"), &ip) == 0 && addresses_has(&ip));
	CHECK(ip_parse(STR("fdca:7a1e:c0de:1:1::"), &ip) == 0 && !addresses_has(&ip));
	addresses_done(&addresses);
}

/* The oldest are forgotten, and their addresses are not given to others for long. */
static void at_the_limit_old_names_lead_nowhere(void)
{
	struct ip first4, first6, ip4, ip6;
	char name[32];

	CHECK(addresses_give(&addresses, "first.test", &first4, &first6) == 0);
	for (int i = 0; i < LIMIT_NET_NAMES - 1; i++) {
		(void)snprintf(name, sizeof name, "n%d.test", i);
		CHECK(addresses_give(&addresses, name, &ip4, &ip6) == 0);
	}
	CHECK_STR(addresses_find(&addresses, &first4), "first.test");
	CHECK(addresses_give(&addresses, "one-too-many.test", &ip4, &ip6) == 0);
	CHECK(!addresses_find(&addresses, &first4) && !addresses_find(&addresses, &first6));
	CHECK(addresses_give(&addresses, "first.test", &ip4, &ip6) == 0 && !ip_eq(&ip4, &first4));
	CHECK_STR(addresses_find(&addresses, &ip4), "first.test");
	addresses_done(&addresses);
}

static void numbers_begin_again_after_all_others(void)
{
	struct ip ip4, ip6;
	char name[32];

	for (int i = 0; i < NETPLAN_NAMES + 10; i++) {
		(void)snprintf(name, sizeof name, "n%d.test", i);
		CHECK(addresses_give(&addresses, name, &ip4, &ip6) == 0);
		CHECK(addresses_has(&ip4) && addresses_has(&ip6));
		CHECK_STR(addresses_find(&addresses, &ip4), name);
	}
	addresses_done(&addresses);
}

T_MAIN(T(a_name_has_one_address_of_each_family_and_they_lead_back), T(other_addresses_lead_nowhere),
       T(at_the_limit_old_names_lead_nowhere), T(numbers_begin_again_after_all_others))
