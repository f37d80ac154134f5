/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a proxy, as in HTTP_PROXY and similar variables. */
#pragma once

#include "base/buf.h"
#include "wire/host.h"

struct proxy {
	bool socks;
	struct host host;
	uint16_t port;
	struct str userinfo; /* "user:password", percent-encoded as received; a view of the input */
};

enum { PROXY_PASSWORD_MOST = 255 }; /* longest password and user name: SOCKS allows no more */

/*
 * "[http://|socks5://][user:password@]host[:port]". socks5h is the same as socks5: the proxy always
 * resolves names. 0 or -EINVAL. TLS to a proxy is not supported.
 */
int proxy_parse(struct str url, struct proxy *ret);
/* Decode both parts into buffers of PROXY_PASSWORD_MOST. 0, -E2BIG or -ENOMEM. */
int proxy_userinfo(struct str userinfo, struct buf *user, struct buf *password);
