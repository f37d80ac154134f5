/* SPDX-License-Identifier: Apache-2.0 */
/* Content of files that may change while it is read. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* 1 where both hold the same, 0 where not, or -errno. Holes are not read. */
int content_same(int a, int b);
