/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers pass a proxy; internal to it. */
#pragma once

#include "http/proxy.h"

/* Append the head of the request for the server. 0 or -errno. */
int proxy_put_request(struct buf *out, struct http_request *r, const struct http_proxy_options *o);
/* Add the headers of the server's answer that the client may see. */
void proxy_copy_answer(struct http_request *r, const struct http_head *h);
/* The length of the answer's body for http_answer_begin(). */
int64_t proxy_length(const struct http_head *h, const struct http_request *r);
