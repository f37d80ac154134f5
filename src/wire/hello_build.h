/* SPDX-License-Identifier: Apache-2.0 */
/* Builds ClientHellos for tests. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "t.h"

static inline void put(struct buf *b, const void *p, size_t n)
{
	CHECK(buf_add(b, p, n) == 0);
}

static inline void put_u16(struct buf *b, unsigned v)
{
	const uint8_t wire[] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(b, wire, 2);
}

static inline void put_ext(struct buf *b, unsigned type, struct str data)
{
	put_u16(b, type);
	put_u16(b, (unsigned)data.n);
	put(b, data.p, data.n);
}

static inline void put_sni(struct buf *b, struct str name)
{
	put_u16(b, 0);
	put_u16(b, (unsigned)name.n + 5);
	put_u16(b, (unsigned)name.n + 3);
	put(b, "", 1);
	put_u16(b, (unsigned)name.n);
	put(b, name.p, name.n);
}

/* The handshake message with these extensions; exts NULL: without an extensions block. */
static inline void put_hello(struct buf *b, const struct buf *exts)
{
	struct buf body = BUF_INIT(1 << 20);
	uint8_t head[4] = { 1 };

	put_u16(&body, 0x0303);
	put(&body, "0123456789abcdef0123456789abcdef", 32);
	put(&body, "\0", 1);
	put_u16(&body, 4);
	put_u16(&body, 0x1301);
	put_u16(&body, 0x0a0a);
	put(&body, "\1\0", 2);
	if (exts) {
		put_u16(&body, (unsigned)exts->len);
		put(&body, exts->data, exts->len);
	}
	head[1] = (uint8_t)(body.len >> 16);
	head[2] = (uint8_t)(body.len >> 8);
	head[3] = (uint8_t)body.len;
	put(b, head, 4);
	put(b, body.data, body.len);
	buf_done(&body);
}

/* The message, split into records of at most `size` bytes. */
static inline void put_records(struct buf *b, struct str message, size_t size)
{
	for (size_t at = 0; at < message.n; at += size) {
		size_t n = message.n - at < size ? message.n - at : size;

		put(b, "\x16\x03\x01", 3);
		put_u16(b, (unsigned)n);
		put(b, message.p + at, n);
	}
}
