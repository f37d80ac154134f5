/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 (RFC 1928), the server's side: no authentication, CONNECT only. */
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

/* Bytes of the greeting, 0 for more, -EBADMSG. *ret_ok: "no authentication" is offered. */
int64_t socks_greeting_parse(struct str in, bool *ret_ok);
/* The answer to it, SOCKS_METHOD_REPLY bytes. */
void socks_method_reply(bool ok, uint8_t out[SOCKS_METHOD_REPLY]);
/*
 * Bytes of the request, 0 for more; -EBADMSG, and *ret_rep is what to answer with:
 * a command that is not CONNECT, an address type that is not known, a name that is none.
 */
int64_t socks_request_parse(struct str in, struct socks_request *ret, enum socks_rep *ret_rep);
/* The length of the answer. */
size_t socks_reply(enum socks_rep rep, const struct ip *bound, uint16_t port,
		   uint8_t out[SOCKS_REPLY]);
