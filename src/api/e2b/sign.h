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
/* What a query says about who may. */
enum sign { SIGN_MISSING, SIGN_WRONG, SIGN_EXPIRED, SIGN_FITS };

/* Of the sandbox with this token. */
enum sign sign_check(struct http_request *r, const char *token);
/* The same of a method and a raw query. */
enum sign sign_check_query(struct str method, struct str query, const char *token);
