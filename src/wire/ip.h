/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and ranges of them. Reading is strict: an IPv4 address is four decimal numbers
 * without leading zeros, an IPv6 address is as RFC 4291 writes it, without a zone. Other
 * spellings (0177.1, 0x7f000001, 127.1) are not addresses here; wire/host.h refuses them as
 * names too.
 */
#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/str.h"

enum { IP_TEXT = 46 }; /* the longest text, with its terminator */

struct ip {
	uint8_t len; /* 4, 16, or 0: none */
	uint8_t b[16];
};

struct cidr {
	struct ip ip; /* bits after the prefix are 0 */
	uint8_t bits;
};

/* 0 or -EINVAL. No brackets. */
int ip_parse(struct str text, struct ip *ret);
/* As RFC 5952 writes it; "" for none. */
void ip_text(const struct ip *ip, char out[IP_TEXT]);
bool ip_eq(const struct ip *a, const struct ip *b);
/* An IPv4 address that was written as ::ffff:a.b.c.d becomes an IPv4 address. */
struct ip ip_plain(struct ip ip);
/* None (len 0) for another family. v4-mapped addresses stay as they are. */
struct ip ip_of_sockaddr(const struct sockaddr *sa, uint16_t *ret_port);
/* The length of the address, 0 for none. */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret);

/* "10.0.0.0/8" or one address. 0, -EINVAL, or -ERANGE where bits after the prefix are set. */
int cidr_parse(struct str text, struct cidr *ret);
/* The address lies in the range; both of one family. */
bool cidr_has(const struct cidr *c, const struct ip *ip);
/* All of inner lies in outer. */
bool cidr_within(const struct cidr *inner, const struct cidr *outer);
enum { CIDR_TEXT = IP_TEXT + 4 };
/* Without the prefix where it is one address. */
void cidr_text(const struct cidr *c, char out[CIDR_TEXT]);
