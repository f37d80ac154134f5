/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"

#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

#define ELLIPSIS "\xe2\x80\xa6"

static bool is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Write one escape to out and return its length. n: bytes of the character, 0 if invalid. */
static size_t escape(char out[8], uint8_t byte, size_t n, uint32_t c)
{
	static const char letters[] = "abtnvfr";
	int len;

	if (n == 1 && c >= '\a' && c <= '\r')
		len = snprintf(out, 8, "\\%c", letters[c - '\a']);
	else if (n <= 1)
		len = snprintf(out, 8, "\\x%02x", byte);
	else
		len = snprintf(out, 8, "\\u%04x", c & 0xffffu);
	return (size_t)len;
}

/*
 * Copies whole characters, so that a cut never splits one. `fits` is the last length at which the
 * ellipsis still fits.
 */
int text_safe_cut(struct buf *out, struct str text, size_t most)
{
	size_t start = out->len, fits = out->len;

	while (text.n > 0) {
		char esc[8];
		uint32_t c = 0;
		size_t n = utf8_next(text, &c);
		struct str piece = { text.p, n };
		int r;

		if (n == 0 || is_hostile(c))
			piece = (struct str){ esc, escape(esc, (uint8_t)text.p[0], n, c) };
		if (out->len - start + piece.n > most) {
			if (out->len > fits)
				out->data[out->len = fits] = '\0';
			return most < sizeof ELLIPSIS - 1 ? 0 : buf_add_c(out, ELLIPSIS);
		}
		r = buf_add_str(out, piece);
		if (r < 0)
			return r;
		if (out->len - start + sizeof ELLIPSIS - 1 <= most)
			fits = out->len;
		n += n == 0;
		text.p += n;
		text.n -= n;
	}
	return 0;
}

int text_safe(struct buf *out, struct str text)
{
	return text_safe_cut(out, text, SIZE_MAX);
}
