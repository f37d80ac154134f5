/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses may be dialled. By default only global unicast: not what the special-purpose
 * registries of IANA (RFC 6890 and later) list, nor what hides an IPv4 address in an IPv6 one.
 *
 * ADDRESS_NEVER: loopback, "this network", multicast, broadcast, reserved: no rule opens them.
 * ADDRESS_SPECIAL: private, link-local, shared, documentation, …: a rule opens them that names
 * them: a range that lies within the registered one (0.0.0.0/0 does not open 10.0.0.0/8).
 * ADDRESS_METADATA: the clouds' metadata services: only a rule for exactly this address.
 */
#pragma once

#include "wire/ip.h"

enum address_class { ADDRESS_GLOBAL, ADDRESS_SPECIAL, ADDRESS_METADATA, ADDRESS_NEVER };

struct address_info {
	enum address_class class;
	const char *what;  /* "private", "loopback", ...; "global" */
	struct cidr range; /* the registered range; of ADDRESS_GLOBAL: the address */
};

/* v4-mapped addresses are looked at as IPv4. */
struct address_info address_classify(const struct ip *ip);
/* A rule for `named` opens this address. */
bool address_opened_by(const struct ip *ip, const struct cidr *named);
