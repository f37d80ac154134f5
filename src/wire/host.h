/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names and authorities (RFC 1123, RFC 3986 3.2) in one canonical form: lower case, no final
 * dot; only letters, digits, '-' and '_'; labels of 1 to 63 bytes, 253 bytes in all.
 *
 * We refuse everything that two readers could take for different hosts:
 * - NUL, '%', '@' and empty labels
 * - bytes above 127 (IDN is written in punycode)
 * - names that some resolver takes for an address: the last label is a number in any base
 *   (127.1, 0x7f.1, 2130706433, 1.2.3.4.)
 */
#pragma once

#include "wire/ip.h"

enum { HOST_TEXT = 254 }; /* the longest name, with its terminator */

/* Either an address or a name. */
struct host {
	struct ip ip;	      /* len 0: it is a name */
	char name[HOST_TEXT]; /* "" for an address */
};

/* Canonical form of a name. 0, -EINVAL, or -EADDRNOTAVAIL for a spelling of an address. */
int host_name(struct str text, char out[HOST_TEXT]);
/* A name, an IPv4 address, or an IPv6 address in brackets. Errors as for host_name(). */
int host_parse(struct str text, struct host *ret);
/* "host" or "host:port"; *ret_port is 0 without a port. Errors as for host_name(). */
int authority_parse(struct str text, struct host *ret, uint16_t *ret_port);
/*
 * An Origin header: "http://host" or "https://host:port"; *ret_port is 80 or 443 without a port.
 * -EINVAL also for "null" and for anything behind the authority.
 */
int origin_parse(struct str text, struct host *ret, uint16_t *ret_port);
/* The same address or the same name. */
bool host_eq(const struct host *a, const struct host *b);
/* The address or the name for display; IPv6 without brackets. */
void host_text(const struct host *h, char out[HOST_TEXT]);
/* A decimal port from 1 to 65535, without sign, blanks or leading zeros. 0 or -EINVAL. */
int port_parse(struct str text, uint16_t *ret);
/* Describe an error of these functions: "is not a host name", ... */
const char *host_why(int err);
