/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses may be dialled. By default only global unicast: not the addresses in IANA's
 * special-purpose registries (RFC 6890 and later), and not IPv6 addresses that embed such an IPv4
 * address.
 *
 * - ADDRESS_NEVER: loopback, "this network", multicast, broadcast, reserved. No rule opens them.
 * - ADDRESS_SPECIAL: private, link-local, shared, documentation and others. A rule opens them only
 *   if its range lies within the registered range: 0.0.0.0/0 does not open 10.0.0.0/8.
 * - ADDRESS_METADATA: cloud metadata services. Only a rule for exactly this address opens them.
 */
#pragma once

#include "wire/ip.h"

enum address_class { ADDRESS_GLOBAL, ADDRESS_SPECIAL, ADDRESS_METADATA, ADDRESS_NEVER };

struct address_info {
	enum address_class class;
	const char *what;  /* "private", "loopback", ...; "global" */
	struct cidr range; /* the registered range; for ADDRESS_GLOBAL: the address */
};

/* v4-mapped addresses count as IPv4. */
struct address_info address_classify(const struct ip *ip);
/* True if a rule for `named` opens this address. */
bool address_opened_by(const struct ip *ip, const struct cidr *named);
