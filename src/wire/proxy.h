/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a proxy, as environments have it. */
#pragma once

#include "base/buf.h"
#include "wire/host.h"

struct proxy {
	bool socks;
	struct host host;
	uint16_t port;
	struct str userinfo; /* "user:password", percent-encoded as it came; a view of the input */
};

enum { PROXY_PASSWORD_MOST = 255 }; /* and of the user's name: SOCKS has no more */

/*
 * "[http://|socks5://][user:password@]host[:port]", also as socks5h: names are looked up by the
 * proxy in any case. 0 or -EINVAL; TLS to a proxy is not spoken here.
 */
int proxy_parse(struct str url, struct proxy *ret);
/* Both parts, decoded; buffers of PROXY_PASSWORD_MOST. 0, -E2BIG or -ENOMEM. */
int proxy_userinfo(struct str userinfo, struct buf *user, struct buf *password);
