/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"

#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

enum { ESCAPE = 16 };
#define ELLIPSIS "\xe2\x80\xa6"

bool text_is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0xfff9 && c <= 0xfffb) || utf8_is_ignorable(c);
}

/* Write one escape to out and return its length. n: bytes of the character, 0 if invalid. */
static size_t escape(char out[ESCAPE], uint8_t byte, size_t n, uint32_t c)
{
	static const char letters[] = "abtnvfr";
	int len;

	if (n == 1 && c >= '\a' && c <= '\r')
		len = snprintf(out, ESCAPE, "\\%c", letters[c - '\a']);
	else if (n <= 1)
		len = snprintf(out, ESCAPE, "\\x%02x", byte);
	else if (c <= 0xffff)
		len = snprintf(out, ESCAPE, "\\u%04x", c);
	else
		len = snprintf(out, ESCAPE, "\\U%08x", c);
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
		char esc[ESCAPE];
		uint32_t c = 0;
		size_t n = utf8_next(text, &c);
		struct str piece = { text.p, n };
		int r;

		if (n == 0 || text_is_hostile(c))
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
