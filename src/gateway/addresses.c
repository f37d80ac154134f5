/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/addresses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/netplan.h"

static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

static struct address_name **bucket(struct addresses *p, uint32_t hash)
{
	return &p->buckets[hash % ADDRESS_BUCKETS];
}

static void forget(struct addresses *p, struct address_name *n)
{
	struct address_name **at = bucket(p, n->hash);

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	free(n);
}

static struct address_name *add(struct addresses *p, const char *name, uint32_t hash)
{
	size_t size = strlen(name) + 1;
	struct address_name *n = malloc(sizeof *n + size), **slot, **at;

	if (!n)
		return NULL;
	slot = &p->slots[p->next % LIMIT_NET_NAMES];
	if (*slot)
		forget(p, *slot);
	at = bucket(p, hash);
	*n = (struct address_name){ .next = *at, .number = p->next, .hash = hash };
	memcpy(n->name, name, size);
	*slot = *at = n;
	p->next = (p->next + 1) % NETPLAN_NAMES;
	return n;
}

static void put_be32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get_be32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

int addresses_give(struct addresses *p, const char *name, struct ip *ret4, struct ip *ret6)
{
	uint32_t hash = hash_of(name);
	struct address_name *n = *bucket(p, hash);

	while (n && (n->hash != hash || strcmp(n->name, name) != 0))
		n = n->next;
	if (!n)
		n = add(p, name, hash);
	if (!n)
		return -ENOMEM;
	*ret4 = (struct ip){ .len = 4 };
	put_be32(ret4->b, NETPLAN_NAMES4 + n->number);
	*ret6 = (struct ip){ .len = 16 };
	memcpy(ret6->b, netplan_names6, sizeof netplan_names6);
	put_be32(ret6->b + 12, n->number);
	return 0;
}

/* The number of an address, or -1. */
static int64_t number_of(const struct ip *ip)
{
	uint32_t n;

	if (ip->len == 4)
		n = get_be32(ip->b) - NETPLAN_NAMES4;
	else if (ip->len == 16 && memcmp(ip->b, netplan_names6, 12) == 0)
		n = get_be32(ip->b + 12);
	else
		return -1;
	return n < NETPLAN_NAMES ? (int64_t)n : -1;
}

bool addresses_has(const struct ip *ip)
{
	return number_of(ip) >= 0;
}

const char *addresses_find(const struct addresses *p, const struct ip *ip)
{
	int64_t number = number_of(ip);
	const struct address_name *n;

	if (number < 0)
		return NULL;
	n = p->slots[number % LIMIT_NET_NAMES];
	return n && n->number == number ? n->name : NULL;
}

void addresses_done(struct addresses *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->slots); i++)
		free(p->slots[i]);
	*p = (struct addresses){ .next = 0 };
}
