/* SPDX-License-Identifier: Apache-2.0 */
/* Write server-sent events (the text/event-stream format of the HTML standard). */
#pragma once

#include "base/buf.h"

/*
 * Append one event. event and id may be empty. Each line of data becomes a "data:" line; CR, LF and
 * CRLF all end a line. -EINVAL if event or id has a line end or NUL; b is then unchanged.
 */
int sse_put(struct buf *b, struct str event, struct str id, struct str data);
/* A comment line, to keep a connection alive. */
int sse_put_comment(struct buf *b, struct str text);
