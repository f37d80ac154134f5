/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/address.h"

#include "base/cleanup.h"

enum { BITS = 8 };

/* Where an embedded IPv4 address starts, or none. */
enum { PLAIN = 0, AT_2 = 2, AT_12 = 12 };

struct row {
	const char *what;
	enum address_class class;
	uint8_t bits;
	uint8_t embedded;
	uint8_t b[16];
};

/*
 * IANA IPv4 Special-Purpose Address Registry, and cloud addresses; the first matching row counts.
 */
static const struct row v4_rows[] = {
	{ "cloud metadata", ADDRESS_METADATA, 32, PLAIN, { 169, 254, 169, 254 } },
	{ "cloud metadata (containers)", ADDRESS_METADATA, 32, PLAIN, { 169, 254, 170, 2 } },
	{ "cloud metadata (pods)", ADDRESS_METADATA, 32, PLAIN, { 169, 254, 170, 23 } },
	{ "cloud metadata", ADDRESS_METADATA, 32, PLAIN, { 169, 254, 42, 42 } },
	{ "cloud metadata", ADDRESS_METADATA, 32, PLAIN, { 100, 100, 100, 200 } },
	{ "cloud metadata", ADDRESS_METADATA, 32, PLAIN, { 192, 0, 0, 192 } },
	{ "cloud metadata", ADDRESS_METADATA, 32, PLAIN, { 168, 63, 129, 16 } },
	{ "this network", ADDRESS_NEVER, 8, PLAIN, { 0 } },
	{ "private", ADDRESS_SPECIAL, 8, PLAIN, { 10 } },
	{ "shared by a carrier", ADDRESS_SPECIAL, 10, PLAIN, { 100, 64 } },
	{ "loopback", ADDRESS_NEVER, 8, PLAIN, { 127 } },
	{ "link-local", ADDRESS_SPECIAL, 16, PLAIN, { 169, 254 } },
	{ "private", ADDRESS_SPECIAL, 12, PLAIN, { 172, 16 } },
	{ "for protocols", ADDRESS_SPECIAL, 24, PLAIN, { 192, 0, 0 } },
	{ "documentation", ADDRESS_SPECIAL, 24, PLAIN, { 192, 0, 2 } },
	{ "AS112", ADDRESS_SPECIAL, 24, PLAIN, { 192, 31, 196 } },
	{ "AMT", ADDRESS_SPECIAL, 24, PLAIN, { 192, 52, 193 } },
	{ "6to4 relay", ADDRESS_SPECIAL, 24, PLAIN, { 192, 88, 99 } },
	{ "private", ADDRESS_SPECIAL, 16, PLAIN, { 192, 168 } },
	{ "AS112", ADDRESS_SPECIAL, 24, PLAIN, { 192, 175, 48 } },
	{ "benchmarking", ADDRESS_SPECIAL, 15, PLAIN, { 198, 18 } },
	{ "documentation", ADDRESS_SPECIAL, 24, PLAIN, { 198, 51, 100 } },
	{ "documentation", ADDRESS_SPECIAL, 24, PLAIN, { 203, 0, 113 } },
	{ "multicast", ADDRESS_NEVER, 4, PLAIN, { 224 } },
	{ "broadcast", ADDRESS_NEVER, 32, PLAIN, { 255, 255, 255, 255 } },
	{ "reserved", ADDRESS_NEVER, 4, PLAIN, { 240 } },
};

/* IANA IPv6 Special-Purpose Address Registry; addresses outside 2000::/3 are not assigned. */
static const struct row v6_rows[] = {
	{ "cloud metadata", ADDRESS_METADATA, 128, PLAIN, { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 } },
	{ "cloud metadata", ADDRESS_METADATA, 128, PLAIN, { 0xfd, 0x20, 0, 0xce, [14] = 2, 0x54 } },
	{ "cloud metadata", ADDRESS_METADATA, 128, PLAIN, { 0xfd, 0, 0, 0x42, [15] = 0x42 } },
	{ "loopback", ADDRESS_NEVER, 128, PLAIN, { [15] = 1 } },
	{ "unspecified", ADDRESS_NEVER, 128, PLAIN, { 0 } },
	{ "an IPv4 address in IPv6", ADDRESS_NEVER, 96, PLAIN, { 0 } },
	{ "an IPv4 address in IPv6", ADDRESS_NEVER, 96, PLAIN, { [10] = 0xff, 0xff } },
	{ "an IPv4 address in IPv6", ADDRESS_NEVER, 96, PLAIN, { [8] = 0xff, 0xff } },
	{ "NAT64", ADDRESS_SPECIAL, 96, AT_12, { 0, 0x64, 0xff, 0x9b } },
	{ "NAT64", ADDRESS_SPECIAL, 48, AT_12, { 0, 0x64, 0xff, 0x9b, 0, 1 } },
	{ "discarded", ADDRESS_NEVER, 64, PLAIN, { 1 } },
	{ "dummy", ADDRESS_NEVER, 64, PLAIN, { 1, [7] = 1 } },
	{ "Teredo", ADDRESS_NEVER, 32, PLAIN, { 0x20, 1 } },
	{ "benchmarking", ADDRESS_SPECIAL, 48, PLAIN, { 0x20, 1, 0, 2 } },
	{ "AMT", ADDRESS_SPECIAL, 32, PLAIN, { 0x20, 1, 0, 3 } },
	{ "AS112", ADDRESS_SPECIAL, 48, PLAIN, { 0x20, 1, 0, 4, 1, 0x12 } },
	{ "ORCHID", ADDRESS_NEVER, 28, PLAIN, { 0x20, 1, 0, 0x10 } },
	{ "ORCHID", ADDRESS_NEVER, 28, PLAIN, { 0x20, 1, 0, 0x20 } },
	{ "drone identity", ADDRESS_NEVER, 28, PLAIN, { 0x20, 1, 0, 0x30 } },
	{ "for protocols", ADDRESS_SPECIAL, 23, PLAIN, { 0x20, 1 } },
	{ "documentation", ADDRESS_SPECIAL, 32, PLAIN, { 0x20, 1, 0x0d, 0xb8 } },
	{ "6to4", ADDRESS_SPECIAL, 16, AT_2, { 0x20, 2 } },
	{ "AS112", ADDRESS_SPECIAL, 48, PLAIN, { 0x26, 0x20, 0, 0x4f, 0x80 } },
	{ "documentation", ADDRESS_SPECIAL, 20, PLAIN, { 0x3f, 0xff } },
	{ "segment routing", ADDRESS_SPECIAL, 16, PLAIN, { 0x5f } },
	{ "private (ULA)", ADDRESS_SPECIAL, 7, PLAIN, { 0xfc } },
	{ "link-local", ADDRESS_SPECIAL, 10, PLAIN, { 0xfe, 0x80 } },
	{ "site-local", ADDRESS_SPECIAL, 10, PLAIN, { 0xfe, 0xc0 } },
	{ "multicast", ADDRESS_NEVER, 8, PLAIN, { 0xff } },
};

static struct cidr whole(const struct ip *ip)
{
	return (struct cidr){ *ip, (uint8_t)(ip->len * BITS) };
}

static struct cidr range_of(const struct row *row, uint8_t len)
{
	struct cidr c = { { .len = len }, row->bits };

	memcpy(c.ip.b, row->b, len);
	return c;
}

static const struct row *row_find(const struct row *rows, size_t n, const struct ip *ip)
{
	for (size_t i = 0; i < n; i++) {
		struct cidr c = range_of(&rows[i], ip->len);

		if (cidr_has(&c, ip))
			return &rows[i];
	}
	return NULL;
}

static struct address_info classify_v4(const struct ip *ip)
{
	const struct row *row = row_find(v4_rows, ARRAY_LEN(v4_rows), ip);

	if (!row)
		return (struct address_info){ ADDRESS_GLOBAL, "global", whole(ip) };
	return (struct address_info){ row->class, row->what, range_of(row, ip->len) };
}

/* An address that embeds another is at least as closed as the embedded one. */
static struct address_info with_embedded(struct address_info info, const struct ip *ip, unsigned at)
{
	struct ip inner = { .len = 4 };
	struct address_info in;

	memcpy(inner.b, ip->b + at, 4);
	in = classify_v4(&inner);
	if (in.class > info.class) {
		info.class = in.class;
		info.what = in.what;
	}
	return info;
}

struct address_info address_classify(const struct ip *ip)
{
	struct ip plain = ip_plain(*ip);
	struct address_info info = { ADDRESS_NEVER, "unassigned", whole(&plain) };
	const struct row *row;

	if (plain.len == 4)
		return classify_v4(&plain);
	if (plain.len != 16)
		return info;
	row = row_find(v6_rows, ARRAY_LEN(v6_rows), &plain);
	if (row) {
		info = (struct address_info){ row->class, row->what, range_of(row, plain.len) };
		return row->embedded ? with_embedded(info, &plain, row->embedded) : info;
	}
	if (plain.b[0] >> 5 == 1)
		info = (struct address_info){ ADDRESS_GLOBAL, "global", whole(&plain) };
	return info;
}

bool address_opened_by(const struct ip *ip, const struct cidr *named)
{
	struct address_info info = address_classify(ip);
	struct ip plain = ip_plain(*ip);

	if (!cidr_has(named, &plain))
		return false;
	switch (info.class) {
	case ADDRESS_GLOBAL:
		return true;
	case ADDRESS_SPECIAL:
		return cidr_within(named, &info.range);
	case ADDRESS_METADATA:
		return named->bits == plain.len * BITS;
	case ADDRESS_NEVER:
		break;
	}
	return false;
}
