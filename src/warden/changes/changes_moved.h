/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renamed directories of a lower layer.
 *
 * To rename such a directory, init replaces it and all directories in it with new ones
 * (init/pure.h). So no inode shows that the new directory is the old one; the entries do. A deleted
 * directory and a new one are a pair if at least half of the first one's entries are in the second,
 * with the same name and inode. For an entry of a lower layer, the same name, type, size, mtime and
 * mode suffice. An empty directory is matched by its own mtime and mode.
 *
 * For each pair, the entries that the lower layers have in the old directory become differences of
 * kind "gone", so that changes_report_match() finds where each entry went.
 */
#pragma once

#include "warden/changes/changes_report.h"

/* Call before any other matching. 0 or -ENOMEM. */
int changes_moved(struct changes_report *p);
