/* SPDX-License-Identifier: Apache-2.0 */
/* Against web pages that reach this server from the browser of somebody who may. */
#pragma once

#include "wire/http1.h"

enum { NAMES_MOST = 16 };

/* Names under which clients may know this server, and pages that may use it. */
struct known_names {
	char domains[NAMES_MOST][HOST_TEXT];
	int ndomains;
	struct {
		struct host host;
		uint16_t port;
	} origins[NAMES_MOST];
	int norigins;
};

/* -EINVAL if it is not one, -ENOSPC above NAMES_MOST. */
int names_add_domain(struct known_names *n, struct str text);
int names_add_origin(struct known_names *n, struct str text);
/*
 * A client that proves nothing must name us by an address, as localhost, below one of our domains,
 * or as a port of a sandbox (is_port) where no domain is configured. Else a web page could reach us
 * through a name of its own that leads to this machine (DNS rebinding).
 */
bool names_know_host(const struct known_names *n, const struct http_head *h, bool is_port);
/* Whether names of ports end with this domain; without a domain of ours any will do. */
bool names_have_domain(const struct known_names *n, const char *domain);
/* No Origin, our own, or one that is allowed. */
bool names_know_origin(const struct known_names *n, const struct http_head *h, bool tls);
