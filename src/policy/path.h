/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of plain HTTP requests. */
#pragma once

#include "base/str.h"

/*
 * Every server takes this path as it is written: no dot segments, no empty ones in the middle, no
 * backslash, no encoded slash, backslash, NUL or unreserved character (RFC 3986 6.2.2), no
 * malformed encoding.
 */
bool path_is_plain(struct str path);
