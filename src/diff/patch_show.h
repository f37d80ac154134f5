/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for a patch that a terminal shows. Files of a sandbox hold what the sandbox likes, also
 * sequences that a terminal obeys. All that base/safe.h calls hostile is shown as an escape; only
 * ends of lines and tabs stay. Such a patch is for reading: git apply wants the bytes themselves.
 */
#pragma once

#include <stdio.h>

/* Writes to `to`, which stays open; close it with fclose(). NULL for lack of memory. */
FILE *patch_show_open(FILE *to);
