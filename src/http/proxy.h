/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pass one request on to a connected socket, and its answer back. Both are parsed strictly. Headers
 * that concern one connection only (RFC 9110 7.6.1) are removed in both directions. If the server
 * answers 101, the connection becomes a tunnel.
 */
#pragma once

#include "http/request.h"

struct http_proxy_options {
	struct str host;	     /* Host to send; empty: the client's own */
	struct str target;	     /* request target; empty: the client's own */
	const char *const *remove;   /* names of further request headers to remove; NULL ends it */
	const char *forwarded_proto; /* X-Forwarded-Proto, or NULL: no X-Forwarded-* */
	unsigned answer_ms;	     /* time for the head of the answer; 0: 600,000 */
	/*
	 * Optional; replaces the plain 502 or 504 of a server that fails before its answer. It must
	 * answer r.
	 */
	void (*failed)(struct http_request *r, void *user, int status);
	/*
	 * The request is over. fd is the connection if it can take another request, else FD_NONE.
	 * Owns fd.
	 */
	void (*ended)(void *user, int fd);
	void *user;
};

/*
 * Owns fd, also on failure. Replaces r->handler and r->user. 0, or -errno and r is unanswered; then
 * `ended` does not run. Strings in o are copied as needed; user is kept.
 */
int http_proxy_start(struct http_request *r, int fd, const struct http_proxy_options *o);
