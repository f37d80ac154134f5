/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/connect_envelope.h"

#include <errno.h>
#include <stdint.h>

int envelope_put(struct buf *out, unsigned flags, struct str payload)
{
	unsigned char head[ENVELOPE_HEAD] = {
		(unsigned char)flags,
		(unsigned char)(payload.n >> 24),
		(unsigned char)(payload.n >> 16),
		(unsigned char)(payload.n >> 8),
		(unsigned char)payload.n,
	};
	size_t before = out->len;
	int r;

	if (payload.n > UINT32_MAX || flags & ~(unsigned)(ENVELOPE_COMPRESSED | ENVELOPE_END))
		return -EINVAL;
	r = buf_add(out, head, sizeof head);
	if (r == 0)
		r = buf_add_str(out, payload);
	if (r < 0)
		buf_cut(out, before);
	return r;
}

int64_t envelope_parse(struct str in, size_t most, struct envelope *ret)
{
	const unsigned char *p = (const unsigned char *)in.p;
	uint64_t n;

	if (in.n == 0)
		return 0;
	if (p[0] & ~(unsigned)(ENVELOPE_COMPRESSED | ENVELOPE_END))
		return -EBADMSG;
	if (in.n < ENVELOPE_HEAD)
		return 0;
	n = (uint64_t)p[1] << 24 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 8 | p[4];
	if (n > most)
		return -E2BIG;
	if (in.n - ENVELOPE_HEAD < n)
		return 0;
	ret->flags = p[0];
	ret->payload = (struct str){ in.p + ENVELOPE_HEAD, (size_t)n };
	return (int64_t)(ENVELOPE_HEAD + n);
}
