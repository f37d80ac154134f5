/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <errno.h>

#include "base/limits.h"

static uint64_t get_le(const char *p, int bytes)
{
	uint64_t v = 0;

	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | (uint8_t)p[i];
	return v;
}

static void put_le(char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++, v >>= 8)
		p[i] = (char)(v & 0xff);
}

int64_t frame_parse(struct str in, struct frame *ret)
{
	uint32_t len;

	if (in.n < FRAME_HEADER)
		return 0;
	len = (uint32_t)get_le(in.p, 4);
	if (len > LIMIT_FRAME_BODY)
		return -EMSGSIZE;
	if ((uint8_t)in.p[5] > LIMIT_FRAME_FDS || get_le(in.p + 6, 2) != 0)
		return -EBADMSG;
	if (in.n - FRAME_HEADER < len)
		return 0;
	*ret = (struct frame){
		.type = (uint8_t)in.p[4],
		.nfds = (uint8_t)in.p[5],
		.chan = (uint32_t)get_le(in.p + 8, 4),
		.body = { in.p + FRAME_HEADER, len },
	};
	return (int64_t)FRAME_HEADER + len;
}

int frame_begin(struct buf *b, uint8_t type, uint32_t chan, size_t *ret_at)
{
	char head[FRAME_HEADER] = { 0 };
	size_t at = b->len;
	int r;

	head[4] = (char)type;
	put_le(head + 8, chan, 4);
	r = buf_add(b, head, sizeof head);
	if (r == 0)
		*ret_at = at;
	return r;
}

int frame_end(struct buf *b, size_t at, uint8_t nfds)
{
	size_t len = b->len - at - FRAME_HEADER;

	if (len > LIMIT_FRAME_BODY || nfds > LIMIT_FRAME_FDS)
		return -EMSGSIZE;
	put_le(b->data + at, len, 4);
	b->data[at + 5] = (char)nfds;
	return 0;
}

int frame_put(struct buf *b, uint8_t type, uint32_t chan, struct str body)
{
	size_t at = b->len;
	int r = frame_begin(b, type, chan, &at);

	if (r < 0)
		return r;
	r = buf_add_str(b, body);
	if (r == 0)
		r = frame_end(b, at, 0);
	if (r < 0)
		buf_cut(b, at);
	return r;
}

int field_put(struct buf *b, uint16_t tag, struct str value)
{
	char head[FIELD_HEADER];
	size_t at = b->len;
	int r;

	if (value.n > LIMIT_FRAME_BODY)
		return -EMSGSIZE;
	put_le(head, tag, 2);
	put_le(head + 2, value.n, 4);
	r = buf_add(b, head, sizeof head);
	if (r == 0)
		r = buf_add_str(b, value);
	if (r < 0)
		buf_cut(b, at);
	return r;
}

int field_put_c(struct buf *b, uint16_t tag, const char *value)
{
	return field_put(b, tag, str_of(value));
}

int field_put_u64(struct buf *b, uint16_t tag, uint64_t value)
{
	char bytes[8];

	put_le(bytes, value, 8);
	return field_put(b, tag, (struct str){ bytes, sizeof bytes });
}

int field_next(struct str *body, struct field *ret)
{
	size_t len;

	if (body->n == 0)
		return 0;
	if (body->n < FIELD_HEADER)
		return -EBADMSG;
	len = (size_t)get_le(body->p + 2, 4);
	if (len > body->n - FIELD_HEADER)
		return -EBADMSG;
	ret->tag = (uint16_t)get_le(body->p, 2);
	ret->value = (struct str){ body->p + FIELD_HEADER, len };
	body->p += FIELD_HEADER + len;
	body->n -= FIELD_HEADER + len;
	return 1;
}

int field_u64(struct field f, uint64_t *ret)
{
	if (f.value.n != 8)
		return -EBADMSG;
	*ret = get_le(f.value.p, 8);
	return 0;
}
