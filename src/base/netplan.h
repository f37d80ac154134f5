/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses inside a sandbox with network. They exist only there: 198.18.0.0/15 is reserved for
 * device tests and routed nowhere, and the IPv6 prefix is a unique local prefix.
 *
 *   198.18.0.1   fdca:7a1e:c0de::1     the gateway: resolver and explicit proxy
 *   198.18.0.2   fdca:7a1e:c0de::2     the sandbox itself
 *   198.18.1.0 … 198.19.255.255        host names: address = base + number of the name
 *   fdca:7a1e:c0de:1::N                the same for IPv6
 */
#pragma once

#include <stdint.h>

enum {
	NETPLAN_PORT_TCP = 15001, /* all TCP connections are redirected here */
	NETPLAN_PORT_DNS = 53,
	NETPLAN_PORT_HTTP_PROXY = 3128,
	NETPLAN_PORT_SOCKS = 1080,
	NETPLAN_NAMES = (1 << 17) - 256, /* addresses for names */
};

#define NETPLAN_GATEWAY4      0xc6120001u /* 198.18.0.1, host byte order */
#define NETPLAN_SELF4	      0xc6120002u
#define NETPLAN_NAMES4	      0xc6120100u
#define NETPLAN_GATEWAY4_TEXT "198.18.0.1"
#define NETPLAN_GATEWAY6_TEXT "fdca:7a1e:c0de::1"

#define NETPLAN_PREFIX6 0xfd, 0xca, 0x7a, 0x1e, 0xc0, 0xde
static const uint8_t netplan_gateway6[16] = { NETPLAN_PREFIX6, [15] = 1 };
static const uint8_t netplan_self6[16] = { NETPLAN_PREFIX6, [15] = 2 };
static const uint8_t netplan_names6[16] = {
	NETPLAN_PREFIX6, [7] = 1
}; /* the last four bytes hold N */
