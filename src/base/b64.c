/* SPDX-License-Identifier: Apache-2.0 */
#include "base/b64.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int b64_encode(struct buf *out, struct str bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	size_t n = bytes.n;
	int r = n > SIZE_MAX / 2 ? -E2BIG : buf_reserve(out, (n + 2) / 3 * 4);

	if (r < 0)
		return r;
	for (; n > 0; p += 3, n -= n < 3 ? n : 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) |
			     (n > 2 ? (uint32_t)p[2] : 0);
		char *q = out->data + out->len;

		q[0] = alphabet[v >> 18];
		q[1] = alphabet[v >> 12 & 63];
		q[2] = n > 1 ? alphabet[v >> 6 & 63] : '=';
		q[3] = n > 2 ? alphabet[v & 63] : '=';
		buf_grew(out, 4);
	}
	return 0;
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decode four characters, of which `used` are not padding, into used - 1 bytes. */
static int decode_group(const char *p, size_t used, char out[3])
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int d = i < used ? value_of(p[i]) : 0;

		if (d < 0)
			return -EBADMSG;
		v = v << 6 | (uint32_t)d;
	}
	if (v & (0xffffffu >> (8 * (used - 1))))
		return -EBADMSG;
	out[0] = (char)(v >> 16);
	out[1] = (char)(v >> 8 & 0xff);
	out[2] = (char)(v & 0xff);
	return 0;
}

int b64_decode(struct buf *out, struct str text)
{
	size_t start = out->len;

	if (text.n % 4 != 0)
		return -EBADMSG;
	for (size_t i = 0; i < text.n; i += 4) {
		const char *p = text.p + i;
		bool last = i + 4 == text.n;
		size_t used = !last || p[3] != '=' ? 4 : p[2] != '=' ? 3 : 2;
		char bytes[3];
		int r = decode_group(p, used, bytes);

		if (r == 0)
			r = buf_add(out, bytes, used - 1);
		if (r < 0) {
			if (out->len > start)
				out->data[out->len = start] = '\0';
			return r;
		}
	}
	return 0;
}
