/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP/1.1 messages to the end of a buffer. 0 or -errno as buf_add(). */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* "HTTP/1.1 200 OK" */
int http_put_status(struct buf *b, int status);
int http_put_request(struct buf *b, struct str method, struct str target);
/* -EINVAL where name or value hold what would end the line; b is unchanged. */
int http_put_header(struct buf *b, const char *name, struct str value);
int http_put_header_u64(struct buf *b, const char *name, uint64_t value);
/* The empty line. */
int http_put_end(struct buf *b);
/* A chunk; an empty one is not written, since it would end the body. */
int http_put_chunk(struct buf *b, struct str data);
int http_put_last_chunk(struct buf *b);
/* A whole answer. close: says so in Connection. */
int http_put_answer(struct buf *b, int status, const char *type, struct str body, bool close);
/* The reason phrase of a status: "Not Found". */
const char *http_reason(int status);
