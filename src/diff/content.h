/* SPDX-License-Identifier: Apache-2.0 */
/* Compares files that may change while they are read. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* 1 if both have the same content, 0 if not, or -errno. Holes are not read. */
int content_same(int a, int b);
