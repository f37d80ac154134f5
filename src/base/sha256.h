/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for the hash chain of a trace. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX = 2 * SHA256_SIZE + 1 };

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE]);
/* Hash p in one call. */
void sha256(const void *p, size_t n, uint8_t out[SHA256_SIZE]);
void sha256_hex(const uint8_t hash[SHA256_SIZE], char out[SHA256_HEX]);
/* The hash of a text in hex, used as a file name. */
void sha256_name(const char *text, char out[SHA256_HEX]);
