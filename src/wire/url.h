/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and queries of URLs. Split first, then decode: a "%2F" in a segment is not a separator.
 */
#pragma once

#include "base/buf.h"
#include "wire/host.h"

enum {
	URL_PLUS = 1,  /* '+' means a blank, as in queries */
	URL_SLASH = 2, /* "%2F" is allowed */
};

/*
 * Append the decoded text. -EBADMSG for a '%' without two hexadecimal digits, for "%00", and for
 * "%2F" without URL_SLASH; out is then unchanged.
 */
int url_decode(struct buf *out, struct str text, unsigned flags);
/* Append text with everything but unreserved characters (RFC 3986 2.3) escaped. */
int url_encode(struct buf *out, struct str text);

/*
 * 0 if a raw path is safe to route: it begins with '/', escapes are valid, and no segment is "." or
 * ".." in any spelling, or has a backslash or NUL. -EBADMSG.
 */
int url_path_check(struct str path);
/*
 * The next raw segment of a path; *rest begins as the path. "/a//b/" has "a", "", "b", "". False at
 * the end.
 */
bool url_segment_next(struct str *rest, struct str *ret);

/* The next raw name and value of a query; *rest begins as the query. Skips empty parts. */
bool url_query_next(struct str *rest, struct str *ret_name, struct str *ret_value);
/*
 * Append the decoded value of the parameter `name`. 1: found, 0: absent, -EEXIST: there are
 * several, -EBADMSG: malformed, or -errno as buf_add().
 */
int url_query_get(struct str query, const char *name, struct buf *out);

/* An absolute http or https URL, for clients. */
struct url {
	bool tls;
	struct host host;
	uint16_t port;	      /* 80 or 443 if none is given */
	struct str authority; /* as written: for Host */
	struct str target;    /* path and query; "/" if there is none */
};

/* The target is a view of text. -EBADMSG: not such a URL, or with user information or fragment. */
int url_parse(struct str text, struct url *ret);
