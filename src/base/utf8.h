/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* Length of the first character (1 to 4) and its code point; 0 if it is invalid or s is empty. */
size_t utf8_next(struct str s, uint32_t *ret_cp);
bool utf8_valid(struct str s);
/*
 * Default_Ignorable_Code_Point of Unicode: shown as nothing. Case-insensitive file systems drop all
 * of these from names (casefold of Linux) or some (HFS+).
 */
bool utf8_is_ignorable(uint32_t c);
