/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a sandbox's network namespace, written by raw netlink. Whatever leaves for an
 * address that is not of the loopback device is led to the gateway's sockets if it is TCP or
 * DNS, and refused at once if it is anything else. Nothing could leave without the rules
 * either, since there is no other device: they say where it goes instead.
 */
#pragma once

#include <stdbool.h>

/* In the current network namespace. ipv6: its sockets are there too. 0 or -errno. */
int nft_lead_to_gateway(bool ipv6);
