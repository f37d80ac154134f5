/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies (RFC 6265). */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/*
 * The value of a cookie in one Cookie header. 1: found; 0: absent; -EEXIST: there are several, and
 * an attacker may have set one of them; -EBADMSG.
 */
int cookie_get(struct str header, const char *name, struct str *ret);

struct cookie {
	const char *name;
	struct str value;
	const char *path;    /* NULL: "/" */
	int64_t max_age_s;   /* negative: until the browser ends */
	bool secure, strict; /* strict: SameSite=Strict, else Lax */
};

/* Append the value of a Set-Cookie header; always HttpOnly. -EINVAL for bytes that it cannot hold.
 */
int cookie_put(struct buf *b, const struct cookie *c);
