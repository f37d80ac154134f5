/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a ceiling. The caller sets the ceiling when it makes the buffer, so a
 * peer cannot make us allocate more than the author of that code allowed.
 *
 * Invariant: data[len] == '\0' whenever data != NULL.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

struct buf {
	char *data;
	size_t len, cap;
	size_t max; /* ceiling for len */
};

#define BUF_INIT(max_) \
	{ \
		.max = (max_) \
	}

void buf_done(struct buf *b);
DEFINE_AUTO(struct buf, buf_done)

/* Return 0, -E2BIG if the data would exceed the ceiling (b is unchanged), or -ENOMEM. */
int buf_add(struct buf *b, const void *p, size_t n) __attribute__((warn_unused_result));
int buf_add_str(struct buf *b, struct str s) __attribute__((warn_unused_result));
int buf_add_c(struct buf *b, const char *text) __attribute__((warn_unused_result));
int buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/* Make room for n more bytes at data + len; the caller writes there and adds to len. */
int buf_reserve(struct buf *b, size_t n) __attribute__((warn_unused_result));
/* Count n bytes that the caller wrote into the reserved room. */
void buf_grew(struct buf *b, size_t n);
/* Keep only the first len bytes; len must not exceed b->len. */
void buf_cut(struct buf *b, size_t len);
/* Drop the first n bytes. */
void buf_shift(struct buf *b, size_t n);
void buf_clear(struct buf *b);
/* Free the memory if the buffer is empty and its capacity exceeds `keep`. */
void buf_trim(struct buf *b, size_t keep);

/* The caller owns the result and frees it; b is empty afterwards. */
char *buf_take(struct buf *b, size_t *ret_len);

static inline struct str buf_str(const struct buf *b)
{
	return (struct str){ b->data, b->len };
}

/* The bytes after the first `from`. */
static inline struct str buf_behind(const struct buf *b, size_t from)
{
	return b->len > from ? (struct str){ b->data + from, b->len - from } : STR_NONE;
}
