/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink requests, built in place and sent as one datagram; every message asks for an
 * acknowledgement. Nothing is allocated. A message that does not fit is remembered and makes
 * netlink_talk() return -EMSGSIZE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETLINK_REQUEST_MOST = 8192 };

struct netlink {
	_Alignas(8) char data[NETLINK_REQUEST_MOST];
	size_t len;
	size_t at; /* of the message that is being built */
	uint32_t seq;
	int acks; /* answers to await */
	bool full;
};

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *header,
		   size_t size);
void netlink_end(struct netlink *n);
void netlink_put(struct netlink *n, uint16_t type, const void *value, size_t size);
void netlink_text(struct netlink *n, uint16_t type, const char *text);
/* In the byte order that nf_tables wants. */
void netlink_be32(struct netlink *n, uint16_t type, uint32_t value);
void netlink_u32(struct netlink *n, uint16_t type, uint32_t value);
/* Attributes put before netlink_unnest() are inside. */
size_t netlink_nest(struct netlink *n, uint16_t type);
void netlink_unnest(struct netlink *n, size_t nest);

/* A socket of that netlink family in the current network namespace; or -errno. */
int netlink_open(int family);
/* Send what was built and await its acknowledgements: 0, or the first refusal as -errno. */
int netlink_talk(struct netlink *n, int fd);
/*
 * Send one message and await the first that answers it: 0, with its header at the begin of answer,
 * aligned to 8, and as much of it there as nlmsg_len says; or -errno. Whether it is a refusal is
 * for the caller to see. What was left of an earlier question is passed over.
 */
int netlink_ask(int fd, const void *request, size_t size, void *answer, size_t room);
