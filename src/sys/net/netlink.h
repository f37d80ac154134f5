/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink requests, built in place and sent as one datagram; every message asks for an
 * acknowledgement. Allocates nothing. If a message does not fit, netlink_talk() returns -EMSGSIZE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETLINK_REQUEST_MOST = 8192 };

struct netlink {
	_Alignas(8) char data[NETLINK_REQUEST_MOST];
	size_t len;
	size_t at; /* offset of the message being built */
	uint32_t seq;
	int acks; /* number of answers to wait for */
	bool full;
};

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *header,
		   size_t size);
void netlink_end(struct netlink *n);
void netlink_put(struct netlink *n, uint16_t type, const void *value, size_t size);
void netlink_text(struct netlink *n, uint16_t type, const char *text);
/* In network byte order, as nf_tables needs. */
void netlink_be32(struct netlink *n, uint16_t type, uint32_t value);
void netlink_u32(struct netlink *n, uint16_t type, uint32_t value);
/* Attributes put before netlink_unnest() are nested. */
size_t netlink_nest(struct netlink *n, uint16_t type);
void netlink_unnest(struct netlink *n, size_t nest);

/* A socket of this netlink family in the current network namespace, or -errno. */
int netlink_open(int family);
/* Send the request and wait for its acknowledgements: 0, or the first refusal as -errno. */
int netlink_talk(struct netlink *n, int fd);
/*
 * Send one message and wait for its first answer. 0, with the answer at the start of `answer`
 * (aligned to 8) and complete as nlmsg_len says; or -errno. The caller checks whether it is a
 * refusal. Skips answers to earlier requests.
 */
int netlink_ask(int fd, const void *request, size_t size, void *answer, size_t room);
