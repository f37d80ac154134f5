/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) with bounds: a small input cannot become a huge output. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct gunzip {
	void *z; /* z_stream */
	uint64_t in, out, most;
	bool ended;
	char *window; /* decoded bytes */
	const char *why;
};

enum { GUNZIP_MORE, GUNZIP_DATA, GUNZIP_END };

/* most: bytes of output, 0: LIMIT_GUNZIP. 0 or -ENOMEM. */
int gunzip_init(struct gunzip *g, uint64_t most);
void gunzip_done(struct gunzip *g);
/*
 * Use bytes from the front of *in. GUNZIP_DATA: *ret is valid until the next call. GUNZIP_END: one
 * member is complete; input after it is an error. -EBADMSG; -E2BIG above `most` or if the output is
 * more than LIMIT_GUNZIP_RATIO times the input.
 */
int gunzip_next(struct gunzip *g, struct str *in, struct str *ret);
/* Append text as one gzip member. */
int gzip_put(struct buf *out, struct str text);
