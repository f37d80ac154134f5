/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { V4_BYTES = 4, V6_BYTES = 16, MAPPED_BYTES = 12, BITS = 8 };

static const uint8_t mapped[MAPPED_BYTES] = { [10] = 0xff, [11] = 0xff };

int ip_parse(struct str text, struct ip *ret)
{
	struct ip ip = { 0 };
	char copy[IP_TEXT];

	/* glibc and musl agree: four decimal parts without leading zeros; no zones. */
	if (!str_copy(copy, sizeof copy, text) || text.n == 0)
		return -EINVAL;
	if (inet_pton(AF_INET, copy, ip.b) == 1)
		ip.len = V4_BYTES;
	else if (inet_pton(AF_INET6, copy, ip.b) == 1)
		ip.len = V6_BYTES;
	else
		return -EINVAL;
	*ret = ip;
	return 0;
}

void ip_text(const struct ip *ip, char out[IP_TEXT])
{
	int family = ip->len == V4_BYTES ? AF_INET : AF_INET6;

	out[0] = '\0';
	if (ip->len)
		(void)inet_ntop(family, ip->b, out, IP_TEXT);
}

bool ip_eq(const struct ip *a, const struct ip *b)
{
	return a->len == b->len && memcmp(a->b, b->b, a->len) == 0;
}

struct ip ip_plain(struct ip ip)
{
	struct ip v4 = { .len = V4_BYTES };

	if (ip.len != V6_BYTES || memcmp(ip.b, mapped, MAPPED_BYTES) != 0)
		return ip;
	memcpy(v4.b, ip.b + MAPPED_BYTES, V4_BYTES);
	return v4;
}

struct ip ip_of_sockaddr(const struct sockaddr *sa, uint16_t *ret_port)
{
	struct ip ip = { 0 };

	*ret_port = 0;
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		ip.len = V4_BYTES;
		memcpy(ip.b, &in->sin_addr, V4_BYTES);
		*ret_port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		ip.len = V6_BYTES;
		memcpy(ip.b, &in6->sin6_addr, V6_BYTES);
		*ret_port = ntohs(in6->sin6_port);
	}
	return ip;
}

socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret, 0, sizeof *ret);
	if (ip->len == V4_BYTES) {
		memcpy(&in.sin_addr, ip->b, V4_BYTES);
		memcpy(ret, &in, sizeof in);
		return sizeof in;
	}
	if (ip->len != V6_BYTES)
		return 0;
	memcpy(&in6.sin6_addr, ip->b, V6_BYTES);
	memcpy(ret, &in6, sizeof in6);
	return sizeof in6;
}

/* True if the first `bits` bits are equal. */
static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / BITS, rest = bits % BITS;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

static bool tail_is_zero(const struct cidr *c)
{
	for (unsigned bit = c->bits; bit < c->ip.len * (unsigned)BITS; bit++)
		if (c->ip.b[bit / BITS] & (0x80u >> bit % BITS))
			return false;
	return true;
}

/* A decimal number up to 128 without leading zeros, or -1. */
static int prefix_parse(struct str text)
{
	int n = 0;

	if (text.n == 0 || text.n > 3 || (text.n > 1 && text.p[0] == '0'))
		return -1;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -1;
		n = n * 10 + (text.p[i] - '0');
	}
	return n;
}

int cidr_parse(struct str text, struct cidr *ret)
{
	const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
	struct str ip = { text.p, slash ? (size_t)(slash - text.p) : text.n };
	struct cidr c;
	int bits;

	if (ip_parse(ip, &c.ip) < 0)
		return -EINVAL;
	bits = c.ip.len * BITS;
	if (slash) {
		int n = prefix_parse((struct str){ slash + 1, text.n - ip.n - 1 });

		if (n < 0 || n > bits)
			return -EINVAL;
		bits = n;
	}
	c.bits = (uint8_t)bits;
	if (!tail_is_zero(&c))
		return -ERANGE;
	*ret = c;
	return 0;
}

bool cidr_has(const struct cidr *c, const struct ip *ip)
{
	return ip->len && ip->len == c->ip.len && same_prefix(c->ip.b, ip->b, c->bits);
}

bool cidr_within(const struct cidr *inner, const struct cidr *outer)
{
	return inner->bits >= outer->bits && cidr_has(outer, &inner->ip);
}

void cidr_text(const struct cidr *c, char out[CIDR_TEXT])
{
	char ip[IP_TEXT];

	ip_text(&c->ip, ip);
	if (c->bits == c->ip.len * BITS)
		(void)snprintf(out, CIDR_TEXT, "%s", ip);
	else
		(void)snprintf(out, CIDR_TEXT, "%s/%u", ip, c->bits);
}
