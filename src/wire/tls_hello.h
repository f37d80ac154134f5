/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first flight of a TLS client: ClientHello (RFC 8446 4.1.2, RFC 5246 7.4.1.2), which may be
 * cut into records at any byte. Only what a policy or a trace needs is kept, as copies. Strict:
 * wrong lengths, repeated extensions, several names or names that are not host names,
 * and anything after the message in its record, are refused.
 */
#pragma once

#include "wire/host.h"

enum { TLS_ALPN_TEXT = 64 };

struct tls_hello {
	bool has_sni;
	bool ech;		  /* encrypted_client_hello, also a greased one: nobody can tell */
	char sni[HOST_TEXT];	  /* canonical */
	char alpn[TLS_ALPN_TEXT]; /* "h2,http/1.1"; printable, cut */
	uint16_t version;	  /* the highest offered, without GREASE: 0x0303, 0x0304 */
	const char *why;	  /* after an error */
};

/*
 * in: everything received so far. Bytes that the records of the hello take, 0 for more input,
 * -EPROTO where it is not TLS, -EBADMSG, -E2BIG above LIMIT_TLS_HELLO.
 */
int64_t tls_hello_parse(struct str in, struct tls_hello *ret);
/* "TLS 1.3", ... */
const char *tls_version_text(uint16_t version);
