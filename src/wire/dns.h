/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages (RFC 1035, 6891, 8914) for a server that answers from a table: parse one query,
 * write one answer. Strict: one question, at most one OPT, no other records, nothing after them.
 * Allocates nothing.
 */
#pragma once

#include "wire/host.h"

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255,
};

enum dns_rcode {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

/* Extended errors (RFC 8914). */
enum dns_ede {
	DNS_EDE_NONE = -1,
	DNS_EDE_OTHER = 0,
	DNS_EDE_BLOCKED = 15,
	DNS_EDE_CENSORED = 16,
	DNS_EDE_FILTERED = 17,
	DNS_EDE_PROHIBITED = 18,
	DNS_EDE_NOT_READY = 14,
	DNS_EDE_NO_REACHABLE = 22,
	DNS_EDE_NETWORK = 23,
};

enum {
	DNS_UDP_PLAIN = 512, /* without EDNS */
	DNS_UDP_MAX = 1232,  /* largest UDP message that we send or offer */
	DNS_TCP_MAX = 65535,
	DNS_QUESTION = 255 + 4, /* wire form of a question */
};

struct dns_query {
	uint16_t id;
	uint16_t type, class;
	bool recursion; /* RD */
	bool edns, dnssec_ok;
	uint16_t udp_size;    /* largest UDP answer for the client: 512 to DNS_UDP_MAX */
	char name[HOST_TEXT]; /* canonical; "" for the root or a name that host_name() refuses */
	uint16_t question_len;
	uint8_t question[DNS_QUESTION]; /* the question as received, for the answer; keeps upper and
					   lower case */
};

/*
 * Returns one of:
 * - 0
 * - an enum dns_rcode to answer with; ret holds what was parsed, so dns_reply_begin() works
 * - -EBADMSG: send no answer
 */
int dns_query_parse(struct str msg, struct dns_query *ret);
/* The address in a name below in-addr.arpa or ip6.arpa. 0 or -EINVAL. */
int dns_reverse(const char *name, struct ip *ret);

/* Write an answer from front to back: begin, records, end. */
struct dns_reply {
	uint8_t *out; /* borrowed */
	size_t cap, len;
	uint16_t answers;
	bool edns, full; /* full: a record did not fit; the answer sets TC */
};

/* cap: q->udp_size or DNS_TCP_MAX; at least DNS_UDP_PLAIN. */
void dns_reply_begin(struct dns_reply *r, const struct dns_query *q, uint8_t *out, size_t cap);
/* A or AAAA record for the queried name, by the family of the address. */
void dns_reply_ip(struct dns_reply *r, const struct ip *ip, uint32_t ttl_s);
void dns_reply_ptr(struct dns_reply *r, const char *name, uint32_t ttl_s);
/* Return the length of the answer. EDE only if the query had EDNS; the text is cut to fit. */
size_t dns_reply_end(struct dns_reply *r, enum dns_rcode rcode, enum dns_ede ede, struct str text);

/* First message of a TCP stream. Returns its size with the length prefix, or 0 for more input. */
size_t dns_tcp_next(struct str in, struct str *ret_msg);
