/* SPDX-License-Identifier: Apache-2.0 */
/* The content of one file copied into another. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { FILECOPY_CHUNK = 128 * 1024 };

/*
 * Copy `size` bytes of `from` to the empty file `to`. A hole stays a hole. Where *clone is set and
 * the file systems can share blocks (reflink), nothing is copied; where they cannot, *clone becomes
 * false, so that the next call does not ask again. chunk: FILECOPY_CHUNK bytes. 0 or -errno.
 */
int filecopy_data(int from, int to, off_t size, char *chunk, bool *clone);
