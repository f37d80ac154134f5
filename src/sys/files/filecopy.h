/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the content of one file into another. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { FILECOPY_CHUNK = 128 * 1024 };

/*
 * Copy `size` bytes of `from` to the empty file `to`. Holes stay holes. If *clone is set and the
 * file systems can share blocks (reflink), nothing is copied; if they cannot, *clone becomes false,
 * so that the next call does not try again. chunk: FILECOPY_CHUNK bytes. 0 or -errno.
 */
int filecopy_data(int from, int to, off_t size, char *chunk, bool *clone);
