/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make an overlayfs layer from others: a copy of one layer, or one layer that shows the same as a
 * stack. Keeps owners, modes, times, extended attributes, hard links, holes, whiteouts and opaque
 * directories. Shares content with the original if the file system can (reflink). The sources must
 * not change meanwhile.
 */
#pragma once

#include <stdbool.h>

enum { LAYERCOPY_MAX = 64 };

/*
 * from: directories, topmost first. The first n are merged; those from n up to m will be below the
 * result. A name that they lack needs no whiteout, and in a directory that they lack overlayfs
 * would show a whiteout as a file. Makes to_fd/name, which must not exist. privileged: for rootful
 * overlays (sys/files/attrs.h). 0, or -errno, leaving the partial copy for the caller to remove.
 * -ELOOP for trees that are too deep, -E2BIG for too many files with several names.
 */
int layercopy(const int *from, int n, int m, int to_fd, const char *name, bool privileged);
