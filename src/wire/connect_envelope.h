/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the Connect protocol in streams: one byte of flags, four bytes of length, payload. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum { ENVELOPE_HEAD = 5, ENVELOPE_COMPRESSED = 1, ENVELOPE_END = 2 };

struct envelope {
	unsigned flags;
	struct str payload;
};

int envelope_put(struct buf *out, unsigned flags, struct str payload);
/*
 * The envelope at the front of in. Returns its size with the head, or 0 for more input, -EBADMSG
 * for unknown flags, -E2BIG if its payload exceeds most.
 */
int64_t envelope_parse(struct str in, size_t most, struct envelope *ret);
