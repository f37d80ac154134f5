/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of plain HTTP requests. */
#pragma once

#include "base/str.h"

/*
 * True if every server reads this path as written. It has no dot segments, no empty segments in the
 * middle, no backslash and no malformed encoding. It encodes no slash, backslash, NUL or unreserved
 * character (RFC 3986 6.2.2).
 */
bool path_is_plain(struct str path);
