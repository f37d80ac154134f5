/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make untrusted text safe for a terminal. A terminal obeys control characters, so none that a
 * sandbox or a user wrote may reach it. These are shown as escapes:
 * - C0, C1 and DEL (\n, \x1b, \u009b)
 * - characters that reorder or break lines (bidirectional controls, U+2028, U+2029)
 * - bytes that are not UTF-8 (\xff)
 *
 * A backslash stays a backslash: the output is for people. Programs use --json.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Characters that a terminal obeys (controls, direction marks and overrides, line ends) or shows as
 * nothing (tags, variation selectors, joiners, fillers): they can hide text.
 */
bool text_is_hostile(uint32_t c);
/* Append. 0 or -errno as buf_add(). */
int text_safe(struct buf *out, struct str text);
/* The same with at most `most` bytes of output; cut output ends with an ellipsis. */
int text_safe_cut(struct buf *out, struct str text, size_t most);
