/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* FIPS 180-4, 4.2.2: the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_be32(uint8_t *p, uint32_t v)
{
	for (int i = 3; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static void schedule(uint32_t w[64], const uint8_t *p)
{
	for (int i = 0; i < 16; i++)
		w[i] = get_be32(p + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] +
		       (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
}

static void blocks_plain(uint32_t state[8], const uint8_t *p, size_t n)
{
	for (; n > 0; n--, p += 64) {
		uint32_t w[64], s[8];

		schedule(w, p);
		memcpy(s, state, sizeof s);
		for (int i = 0; i < 64; i++) {
			uint32_t e = s[4], a = s[0];
			uint32_t t1 = s[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
				      ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
			uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
				      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

			memmove(s + 1, s, 7 * sizeof s[0]);
			s[4] += t1;
			s[0] = t1 + t2;
		}
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

#ifdef __x86_64__
/*
 * The instructions need the state as (f e b a) and (h g d c). Each pair of sha256rnds2 computes
 * four rounds with the message words in m0; m1 to m3 hold the next twelve.
 */
__attribute__((target("sha,sse4.1"))) static void blocks_ni(uint32_t state[8], const uint8_t *p,
							    size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
	const __m128i *in = (const __m128i *)(const void *)p;
	__m128i *st = (__m128i *)(void *)state;
	__m128i lo = _mm_shuffle_epi32(_mm_loadu_si128(st), 0xb1);
	__m128i hi = _mm_shuffle_epi32(_mm_loadu_si128(st + 1), 0x1b);
	__m128i abef = _mm_alignr_epi8(lo, hi, 8), cdgh = _mm_blend_epi16(hi, lo, 0xf0);

	for (; n > 0; n--, in += 4) {
		__m128i m0 = _mm_shuffle_epi8(_mm_loadu_si128(in), swap);
		__m128i m1 = _mm_shuffle_epi8(_mm_loadu_si128(in + 1), swap);
		__m128i m2 = _mm_shuffle_epi8(_mm_loadu_si128(in + 2), swap);
		__m128i m3 = _mm_shuffle_epi8(_mm_loadu_si128(in + 3), swap);
		__m128i abef0 = abef, cdgh0 = cdgh;

		for (int i = 0; i < 64; i += 4) {
			__m128i wk = _mm_add_epi32(
				m0, _mm_load_si128((const __m128i *)(const void *)(k + i)));
			__m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(m0, m1),
						     _mm_alignr_epi8(m3, m2, 4));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
			next = _mm_sha256msg2_epu32(next, m3);
			m0 = m1;
			m1 = m2;
			m2 = m3;
			m3 = next;
		}
		abef = _mm_add_epi32(abef, abef0);
		cdgh = _mm_add_epi32(cdgh, cdgh0);
	}
	lo = _mm_shuffle_epi32(abef, 0x1b);
	hi = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128(st, _mm_blend_epi16(lo, hi, 0xf0));
	_mm_storeu_si128(st + 1, _mm_alignr_epi8(hi, lo, 8));
}

/* Every CPU with SHA instructions also has SSE4.1. */
static bool cpu_has_sha(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

/* Ask the CPU only once: under a hypervisor each cpuid takes 5 us or more. */
static void blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
	static void (*chosen)(uint32_t *, const uint8_t *, size_t);

	if (!chosen) {
		chosen = blocks_plain;
#ifdef __x86_64__
		if (cpu_has_sha())
			chosen = blocks_ni;
#endif
	}
	chosen(state, p, n);
}

void sha256_init(struct sha256 *s)
{
	/* 5.3.3: the fractions of the square roots of the first 8 primes. */
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->state, first, sizeof first);
	s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
	const uint8_t *at = p;
	size_t held = s->bytes % sizeof s->block;

	s->bytes += n;
	if (held > 0) {
		size_t take = sizeof s->block - held < n ? sizeof s->block - held : n;

		if (take > 0)
			memcpy(s->block + held, at, take);
		if (held + take < sizeof s->block)
			return;
		blocks(s->state, s->block, 1);
		at += take;
		n -= take;
	}
	if (n >= sizeof s->block)
		blocks(s->state, at, n / sizeof s->block);
	at += n - n % sizeof s->block;
	if (n % sizeof s->block > 0)
		memcpy(s->block, at, n % sizeof s->block);
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE])
{
	static const uint8_t pad[64] = { 0x80 };
	uint64_t bits = s->bytes * 8;
	size_t held = s->bytes % sizeof s->block;
	uint8_t len[8];

	put_be32(len, (uint32_t)(bits >> 32));
	put_be32(len + 4, (uint32_t)bits);
	sha256_add(s, pad, (held < 56 ? 56 : 120) - held);
	sha256_add(s, len, sizeof len);
	for (int i = 0; i < 8; i++)
		put_be32(out + 4 * i, s->state[i]);
}

void sha256(const void *p, size_t n, uint8_t out[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, p, n);
	sha256_end(&s, out);
}

void sha256_hex(const uint8_t hash[SHA256_SIZE], char out[SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_SIZE; i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 15];
	}
	out[2 * SHA256_SIZE] = '\0';
}

void sha256_name(const char *text, char out[SHA256_HEX])
{
	uint8_t hash[SHA256_SIZE];

	sha256(text, strlen(text), hash);
	sha256_hex(hash, out);
}
