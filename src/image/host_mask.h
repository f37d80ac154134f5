/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides parts of the host's /usr and /opt by whiteouts in a layer above the host's directory:
 *
 * - files and directories that other users of the host may not read, because root inside would
 *   bypass their permission bits
 * - in /opt and /usr/local, where people install by hand, files that look like credentials
 *
 * Copies nothing, however large the directories are. Reads a file's content only if its name
 * suggests settings. The mask is as old as the base layer: it does not hide what was added or
 * became private later.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Fill `out`, an empty directory, with whiteouts for what must be hidden below host_dir, and add
 * the paths to the report. Without root, walk only /opt and /usr/local. Returns their number, or
 * -1.
 */
int host_mask_make(const char *host_dir, int out, struct buf *report, struct err *e);
/*
 * Report visible files below host_dir whose names suggest a credential; checks at most entries_max
 * entries. Returns their number, or -1.
 */
int host_mask_look(const char *host_dir, int entries_max, struct buf *report, struct err *e);
