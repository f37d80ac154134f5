/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The firewall rules of a sandbox's network namespace, written by raw netlink. TCP and DNS to any
 * address outside loopback are redirected to the gateway's sockets; everything else is refused at
 * once. Without the rules nothing could leave either, because there is no other device.
 */
#pragma once

#include <stdbool.h>

/* In the current network namespace. ipv6: the gateway has IPv6 sockets too. 0 or -errno. */
int nft_lead_to_gateway(bool ipv6);
