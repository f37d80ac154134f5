/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that shows a patch on a terminal. Files of a sandbox can contain any bytes, including
 * terminal control sequences. Everything that base/safe.h calls hostile is shown as an escape; only
 * line ends and tabs stay. Such a patch is for reading: git apply needs the original bytes.
 */
#pragma once

#include <stdio.h>

/* Writes to `to`, which stays open; close it with fclose(). NULL if out of memory. */
FILE *patch_show_open(FILE *to);
