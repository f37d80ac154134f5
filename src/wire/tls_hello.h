/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ClientHello of a TLS client (RFC 8446 4.1.2, RFC 5246 7.4.1.2), which may be split into
 * records at any byte. Copies only what a policy or a trace needs. Strict: refuses wrong lengths,
 * repeated extensions, several names, names that are not host names, and anything after the message
 * in its record.
 */
#pragma once

#include "wire/host.h"

enum { TLS_ALPN_TEXT = 64 };

struct tls_hello {
	bool has_sni;
	bool ech;		  /* encrypted_client_hello; a greased one looks the same */
	char sni[HOST_TEXT];	  /* canonical */
	char alpn[TLS_ALPN_TEXT]; /* "h2,http/1.1"; printable, cut */
	uint16_t version;	  /* the highest offered, without GREASE: 0x0303, 0x0304 */
	const char *why;	  /* after an error: the reason */
};

/*
 * in: everything received so far. Returns the size of the hello's records, 0 for more input,
 * -EPROTO if it is not TLS, -EBADMSG, or -E2BIG above LIMIT_TLS_HELLO.
 */
int64_t tls_hello_parse(struct str in, struct tls_hello *ret);
/* "TLS 1.3", ... */
const char *tls_version_text(uint16_t version);
