/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses for names. Each name that the sandbox looks up gets the next number, and with it an
 * IPv4 and an IPv6 address of a private range. A connection to such an address leads back to the
 * name. Only the last LIMIT_NET_NAMES names are kept. A number is reused only after all others, so
 * an address that a program kept too long leads nowhere instead of to another name.
 */
#pragma once

#include <stdint.h>

#include "base/limits.h"
#include "wire/host.h"

enum { ADDRESS_BUCKETS = 1024 };

struct address_name {
	struct address_name *next; /* in its bucket */
	uint32_t number;
	uint32_t hash;
	char name[];
};

struct addresses {
	struct address_name *slots[LIMIT_NET_NAMES];
	struct address_name *buckets[ADDRESS_BUCKETS];
	uint32_t next;
};

/* The addresses of a canonical name. 0 or -ENOMEM. */
int addresses_give(struct addresses *p, const char *name, struct ip *ret4, struct ip *ret6);
/* The name of an address, or NULL; until the next addresses_give(). */
const char *addresses_find(const struct addresses *p, const struct ip *ip);
/* True if the address is in the private range, whether its name is known or not. */
bool addresses_has(const struct ip *ip);
void addresses_done(struct addresses *p);
