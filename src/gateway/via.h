/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own proxy, through which the dialer connects. */
#pragma once

#include "wire/host.h"

enum { VIA_AUTH = 704 };

struct via {
	bool socks, set;
	struct host host;
	uint16_t port;
	char auth[VIA_AUTH]; /* "Basic …", or a SOCKS message; sent to the proxy only */
	size_t auth_len;
	char *no_proxy; /* as in the environment, or NULL */
};

/* As proxy_parse(). 0 or -EINVAL. */
int via_parse(struct via *v, struct str url);
/* True if connections to this name use the proxy. False for NULL, an address. */
bool via_wanted(const struct via *v, const char *name);
