/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hmac.h"

#include <string.h>

enum { BLOCK = 64 };

static void hash_with(const uint8_t pad[BLOCK], struct str text, uint8_t out[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, pad, BLOCK);
	sha256_add(&s, text.p, text.n);
	sha256_end(&s, out);
}

void hmac_sha256(struct str key, struct str text, uint8_t out[SHA256_SIZE])
{
	uint8_t block[BLOCK] = { 0 }, inner[BLOCK], outer[BLOCK];

	if (key.n > BLOCK)
		sha256(key.p, key.n, block);
	else if (key.n)
		memcpy(block, key.p, key.n);
	for (int i = 0; i < BLOCK; i++) {
		inner[i] = block[i] ^ 0x36;
		outer[i] = block[i] ^ 0x5c;
	}
	hash_with(inner, text, out);
	hash_with(outer, (struct str){ (const char *)out, SHA256_SIZE }, out);
}

bool secret_eq(struct str a, struct str b)
{
	unsigned char differs = 0;

	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		differs |= (unsigned char)(a.p[i] ^ b.p[i]);
	return differs == 0;
}
