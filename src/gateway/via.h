/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy of the host's, through which the gateway dials. */
#pragma once

#include "wire/host.h"

enum { VIA_AUTH = 704 };

struct via {
	bool socks, set;
	struct host host;
	uint16_t port;
	char auth[VIA_AUTH]; /* "Basic …", or a message of SOCKS; never told to anybody else */
	size_t auth_len;
	char *no_proxy; /* as in the environment, or NULL */
};

/* As proxy_parse(). 0 or -EINVAL. */
int via_parse(struct via *v, struct str url);
/* This name goes through the proxy. NULL, an address, never does. */
bool via_wanted(const struct via *v, const char *name);
