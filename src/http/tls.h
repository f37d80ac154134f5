/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for servers: certificates by name, and a filter for each connection. TLS 1.2 and 1.3, ALPN
 * "http/1.1" only, no renegotiation. Certificates come as text, because the process that serves has
 * no files. Replacing them leaves established connections as they are.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "http/filter.h"

struct http_tls;

/* One certificate: a chain, the leaf first, and the leaf's private key, both in PEM. */
struct http_tls_cert {
	struct str chain, key;
};

enum { HTTP_TLS_TICKET = 80, HTTP_TLS_CERTS = 64 };

struct http_tls_options {
	const struct http_tls_cert *certs; /* clients that name none of them get the first */
	size_t n;
	/*
	 * Secret for session tickets, so that sessions outlive a change of certificates and a
	 * restart. NULL: a random one.
	 */
	const unsigned char *ticket; /* HTTP_TLS_TICKET bytes */
};

/* -1 if a certificate is malformed, has no name, or does not fit its key. */
int http_tls_new(struct http_tls **ret, const struct http_tls_options *o, struct err *e);
/* New connections get the new certificates. On failure the old ones stay. */
int http_tls_replace(struct http_tls *t, const struct http_tls_options *o, struct err *e);
/* No connection of t may be left. */
void http_tls_free(struct http_tls *t);
/* Whether the first certificate of a chain in PEM is valid for this host name. */
bool http_tls_names(struct str chain, const char *name);
/* For http_listen_add() and http_server_adopt(). */
const struct http_filter_maker *http_tls_maker(const struct http_tls *t);

/* --- clients --- */

/* The certificates that a client trusts. */
struct http_tls_roots;

/* file: in PEM; NULL: those of the host. */
int http_tls_roots_new(struct http_tls_roots **ret, const char *file, struct err *e);
void http_tls_roots_free(struct http_tls_roots *r);
/*
 * A filter for http_client_init(). The server must prove that it is `host`, a name or an address;
 * else the handshake fails with -ECONNRESET. NULL if memory ran out or host is not valid.
 */
struct http_filter *http_tls_client(const struct http_tls_roots *r, const char *host);
