/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the unit of both stream protocols (warden and init; client and warden). docs/protocol.md
 * is the specification.
 *
 *   u32 length of the body   u8 type   u8 descriptors   u16 zero   u32 channel   body
 *
 * All integers are little endian. The body of a data frame is raw bytes. Every other body is a list
 * of fields: u16 tag, u32 length, bytes. A reader skips unknown tags, so new fields need no new
 * version.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum { FRAME_HEADER = 12, FIELD_HEADER = 6 };

struct frame {
	uint8_t type;
	uint8_t nfds;
	uint32_t chan;
	struct str body; /* borrowed from the input */
};

/*
 * Parse the first frame of `in`. Returns its size, 0 if more input is needed, -EMSGSIZE for a body
 * above LIMIT_FRAME_BODY, or -EBADMSG for a malformed frame.
 */
int64_t frame_parse(struct str in, struct frame *ret);

/* Build a frame at the end of b: begin, add fields or bytes, end. */
int frame_begin(struct buf *b, uint8_t type, uint32_t chan, size_t *ret_at);
int frame_end(struct buf *b, size_t at, uint8_t nfds);
/* Append a whole frame. */
int frame_put(struct buf *b, uint8_t type, uint32_t chan, struct str body);

/* Append a field. -EMSGSIZE above LIMIT_FRAME_BODY; b is unchanged on failure. */
int field_put(struct buf *b, uint16_t tag, struct str value);
int field_put_c(struct buf *b, uint16_t tag, const char *value);
int field_put_u64(struct buf *b, uint16_t tag, uint64_t value);

struct field {
	uint16_t tag;
	struct str value;
};

/* Take the next field of *body. 1 and *ret, 0 at the end, or -EBADMSG. */
int field_next(struct str *body, struct field *ret);
/* -EBADMSG unless the value is exactly eight bytes. */
int field_u64(struct field f, uint64_t *ret);
