/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and their addresses inside. Each name that is looked up gets the next number, and by it
 * an IPv4 and an IPv6 address; a connection to one leads back to the name. The last LIMIT_NET_NAMES
 * names are known. A number is given again only after all others were, so that an address which
 * a program has kept for too long leads nowhere rather than elsewhere.
 */
#pragma once

#include <stdint.h>

#include "base/limits.h"
#include "wire/host.h"

enum { POOL_BUCKETS = 1024 };

struct pool_name {
	struct pool_name *next; /* in its bucket */
	uint32_t number;
	uint32_t hash;
	char name[];
};

struct pool {
	struct pool_name *slots[LIMIT_NET_NAMES];
	struct pool_name *buckets[POOL_BUCKETS];
	uint32_t next;
};

/* The addresses of a canonical name. 0 or -ENOMEM. */
int pool_give(struct pool *p, const char *name, struct ip *ret4, struct ip *ret6);
/* The name of an address, or NULL; until the next pool_give(). */
const char *pool_find(const struct pool *p, const struct ip *ip);
/* The address is one that names have, known or not. */
bool pool_has(const struct ip *ip);
void pool_done(struct pool *p);
