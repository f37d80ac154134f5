/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and address ranges. Parsing is strict: an IPv4 address is four decimal numbers without
 * leading zeros; an IPv6 address follows RFC 4291, without a zone. Other spellings (0177.1,
 * 0x7f000001, 127.1) are not addresses. wire/host.h refuses them as names too.
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
/* RFC 5952 form; "" if there is no address. */
void ip_text(const struct ip *ip, char out[IP_TEXT]);
bool ip_eq(const struct ip *a, const struct ip *b);
/* Turn ::ffff:a.b.c.d into an IPv4 address. */
struct ip ip_plain(struct ip ip);
/* len 0 for another family. v4-mapped addresses stay as they are. */
struct ip ip_of_sockaddr(const struct sockaddr *sa, uint16_t *ret_port);
/* The size of the socket address, or 0 without an address. */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret);

/* "10.0.0.0/8" or one address. 0, -EINVAL, or -ERANGE if bits after the prefix are set. */
int cidr_parse(struct str text, struct cidr *ret);
/* True if the address is in the range and of the same family. */
bool cidr_has(const struct cidr *c, const struct ip *ip);
/* True if all of inner is in outer. */
bool cidr_within(const struct cidr *inner, const struct cidr *outer);
enum { CIDR_TEXT = IP_TEXT + 4 };
/* Leaves out the prefix length of a single address. */
void cidr_text(const struct cidr *c, char out[CIDR_TEXT]);
