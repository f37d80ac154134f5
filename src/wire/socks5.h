/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 (RFC 1928), server side: no authentication, CONNECT only. */
#pragma once

#include <stdint.h>

#include "wire/host.h"

enum { SOCKS_VERSION = 5, SOCKS_REPLY = 22, SOCKS_METHOD_REPLY = 2 };

enum socks_rep {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_NET_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TTL = 6,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS = 8,
};

struct socks_request {
	struct host host;
	uint16_t port;
};

/* Size of the greeting, 0 for more, -EBADMSG. *ret_ok: the client offers "no authentication". */
int64_t socks_greeting_parse(struct str in, bool *ret_ok);
/* The answer to the greeting, SOCKS_METHOD_REPLY bytes. */
void socks_method_reply(bool ok, uint8_t out[SOCKS_METHOD_REPLY]);
/*
 * Size of the request, or 0 for more. -EBADMSG, with the answer in *ret_rep, for a command other
 * than CONNECT, an unknown address type or an invalid name.
 */
int64_t socks_request_parse(struct str in, struct socks_request *ret, enum socks_rep *ret_rep);
/* The length of the answer. */
size_t socks_reply(enum socks_rep rep, const struct ip *bound, uint16_t port,
		   uint8_t out[SOCKS_REPLY]);
