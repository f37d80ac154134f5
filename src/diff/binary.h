/* SPDX-License-Identifier: Apache-2.0 */
/* Binary files in git patches: deflated, in base 85, 52 bytes per line. */
#pragma once

#include <stdio.h>

#include "diff/blob.h"

/* 0 or -errno. */
int binary_literal(FILE *f, const struct blob *b);
