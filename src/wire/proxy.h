/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a proxy, as environments have it. */
#pragma once

#include "wire/host.h"

struct proxy {
	bool socks;
	struct host host;
	uint16_t port;
	struct str userinfo; /* "user:password", percent-encoded as it came; a view of the input */
};

/*
 * "[http://][user:password@]host[:port]", or "socks5://host[:port]", also as socks5h: names are
 * looked up by the proxy in any case. 0 or -EINVAL: TLS to a proxy, and SOCKS with a password, are
 * not spoken here.
 */
int proxy_parse(struct str url, struct proxy *ret);
