/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <stdio.h>
#include <string.h>

static uint32_t rol(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void one_block(uint32_t state[5], const uint8_t *p)
{
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f, k, t;

		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		t = rol(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = rol(b, 30);
		b = a;
		a = t;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1_init(struct sha1 *s)
{
	*s = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
				       0xc3d2e1f0 } };
}

void sha1_add(struct sha1 *s, const void *p, size_t n)
{
	const uint8_t *in = p;
	size_t have = s->bytes % sizeof s->block;

	s->bytes += n;
	if (have && have + n >= sizeof s->block) {
		size_t part = sizeof s->block - have;

		memcpy(s->block + have, in, part);
		one_block(s->state, s->block);
		in += part;
		n -= part;
		have = 0;
	}
	for (; have == 0 && n >= sizeof s->block; in += sizeof s->block, n -= sizeof s->block)
		one_block(s->state, in);
	if (n)
		memcpy(s->block + have, in, n);
}

void sha1_end(struct sha1 *s, char out[SHA1_HEX])
{
	uint64_t bits = s->bytes * 8;
	uint8_t size[8];
	static const uint8_t pad[64] = { 0x80 };

	for (int i = 7; i >= 0; i--, bits >>= 8)
		size[i] = (uint8_t)bits;
	sha1_add(s, pad, 1 + (119 - s->bytes % 64) % 64);
	sha1_add(s, size, sizeof size);
	for (int i = 0; i < 5; i++)
		(void)snprintf(out + (size_t)8 * (size_t)i, 9, "%08x", s->state[i]);
}
