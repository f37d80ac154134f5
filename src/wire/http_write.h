/* SPDX-License-Identifier: Apache-2.0 */
/* Append HTTP/1.1 messages to a buffer. 0 or -errno as buf_add(). */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* "HTTP/1.1 200 OK" */
int http_put_status(struct buf *b, int status);
int http_put_request(struct buf *b, struct str method, struct str target);
/* -EINVAL if name or value could end the line; b is unchanged. */
int http_put_header(struct buf *b, const char *name, struct str value);
int http_put_header_u64(struct buf *b, const char *name, uint64_t value);
/* The empty line. */
int http_put_end(struct buf *b);
/* Append a chunk. Skips empty data, because an empty chunk would end the body. */
int http_put_chunk(struct buf *b, struct str data);
int http_put_last_chunk(struct buf *b);
/* A whole answer. close: adds "Connection: close". */
int http_put_answer(struct buf *b, int status, const char *type, struct str body, bool close);
/* The reason phrase of a status: "Not Found". */
const char *http_reason(int status);
