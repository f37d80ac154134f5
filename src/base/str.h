/* SPDX-License-Identifier: Apache-2.0 */
/* A view of bytes that another object owns. Not terminated; may hold NUL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_NONE ((struct str){ NULL, 0 })
/* For printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_of(const char *c)
{
	return (struct str){ c, c ? strlen(c) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *c)
{
	return str_eq(a, str_of(c));
}

static inline bool str_starts(struct str a, struct str prefix)
{
	return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

/* True if no byte is NUL: a copy can then be a C string. */
static inline bool str_is_text(struct str a)
{
	return a.n == 0 || memchr(a.p, '\0', a.n) == NULL;
}

/* Copy s into dst and terminate it. If s does not fit or holds NUL: false, and dst is empty. */
static inline bool str_copy(char *dst, size_t size, struct str s)
{
	dst[0] = '\0';
	if (s.n >= size || !str_is_text(s))
		return false;
	if (s.n)
		memcpy(dst, s.p, s.n);
	dst[s.n] = '\0';
	return true;
}
