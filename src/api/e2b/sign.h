/* SPDX-License-Identifier: Apache-2.0 */
/* Signed URLs of files: whoever has the URL may read or write that one path. */
#pragma once

#include "http/request.h"

/*
 * "v1_" and the base64, without padding, of the SHA-256 of PATH:OPERATION:USER:TOKEN[:UNTIL].
 * op: read, write. until: seconds, or empty. 0 or -errno.
 */
int sign_put(struct buf *out, const char *path, const char *user, const char *op, const char *token,
	     const char *until);
/* Whether the query is signed with the sandbox's token, and has not expired. */
bool sign_fits(struct http_request *r, const char *token);
