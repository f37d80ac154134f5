/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1, only because git names blobs by it. No security depends on it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA1_SIZE = 20, SHA1_HEX = 2 * SHA1_SIZE + 1 };

struct sha1 {
	uint32_t state[5];
	uint64_t bytes;
	uint8_t block[64];
};

void sha1_init(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *p, size_t n);
void sha1_end(struct sha1 *s, char out[SHA1_HEX]);
