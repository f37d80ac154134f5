/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the host's /usr and /opt stays hidden: files and directories that are closed to
 * other users of the host. Root inside would pass their permission bits. They are hidden by
 * whiteouts in a layer above the host's directory.
 *
 * The layer is as old as the base layer: what became private since is not hidden by it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Fill `out`, an empty directory, with whiteouts for what is private below host_dir, and add
 * the paths to the report. Returns how many there are, or -1.
 */
int host_mask_make(const char *host_dir, int out, struct buf *report, struct err *e);
