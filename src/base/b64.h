/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4: standard alphabet, padded). */
#pragma once

#include "base/buf.h"

/* Append. 0 or -errno as buf_add(). */
int b64_encode(struct buf *out, struct str bytes);
/*
 * Append. Strict: -EBADMSG for anything that the encoder cannot produce; then nothing is appended.
 */
int b64_decode(struct buf *out, struct str text);
