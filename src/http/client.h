/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blocking HTTP/1.1 client on a connected socket, for workers. One request at a time; the
 * connection can be used again if http_client_is_reusable(). Never follows redirects.
 */
#pragma once

#include "base/buf.h"
#include "http/filter.h"
#include "wire/http1.h"

struct http_client {
	int fd; /* owned */
	struct http_filter *filter;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, for everything; 0: none */
	struct buf in;
	size_t taken;
	struct http_head head; /* of the last answer; views of `text` */
	struct buf text;
	struct http_body body;
	bool complete; /* the last answer was read to its end */
};

/* Owns fd, also on failure. filter: NULL for plain; its handshake happens here. 0 or -errno. */
int http_client_init(struct http_client *c, int fd, struct http_filter *filter,
		     uint64_t deadline_ns);
void http_client_done(struct http_client *c);
DEFINE_AUTO(struct http_client, http_client_done)

struct http_client_header {
	const char *name;
	struct str value;
};

/*
 * Send a request and read the head of the answer into c->head; interim answers (1xx) are skipped.
 * Adds Host, Content-Length and "Accept-Encoding: identity". 0; -ETIMEDOUT, -EBADMSG for a
 * malformed answer, or -errno.
 */
int http_client_ask(struct http_client *c, struct str method, struct str host, struct str target,
		    const struct http_client_header *headers, size_t n, struct str body);
/* The next bytes of the body, at most n; 0 at its end; -EBADMSG, -ETIMEDOUT, -errno. */
ssize_t http_client_read(struct http_client *c, void *p, size_t n);
/* Append the whole body; -E2BIG above b's ceiling. */
int http_client_read_all(struct http_client *c, struct buf *b);
bool http_client_is_reusable(const struct http_client *c);
