/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of others for a terminal. A terminal obeys what it is sent, so nothing that a sandbox
 * or a user wrote reaches it as a control: C0, C1 and DEL are shown as escapes (\n, \x1b,
 * \u009b), so are the characters that reorder or break lines (bidirectional controls,
 * U+2028, U+2029), and bytes that are not UTF-8 (\xff). A backslash stays a backslash: this
 * is for reading; --json is for exactness.
 */
#pragma once

#include "base/buf.h"

/* Append. 0 or -errno as buf_add(). */
int text_safe(struct buf *out, struct str text);
/* The same, at most `most` bytes of output; where that cuts, it ends with an ellipsis. */
int text_safe_cut(struct buf *out, struct str text, size_t most);
