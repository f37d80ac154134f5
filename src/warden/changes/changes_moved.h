/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of a lower layer that were renamed.
 *
 * To rename such a directory, init replaces it and all directories in it by new ones (init/pure.h).
 * So no inode tells that the new directory is the old one. What is in it does: a directory that is
 * gone and a new one are a pair if at least half of the entries of the first are found in the
 * second, with the same name and inode, or, of a lower layer, the same name, type, size, mtime
 * and mode. Of an empty directory its own mtime and mode tell.
 *
 * Of a pair, the entries that the lower layers have in the old directory become differences of
 * their own, gone from there, so that changes_report_match() finds where each of them went.
 */
#pragma once

#include "warden/changes/changes_report.h"

/* Before any other match is made. 0 or -ENOMEM. */
int changes_moved(struct changes_report *p);
