/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer of overlayfs made of others: a copy of one, or one that shows the same as several
 * stacked ones do. Owners, modes, times, extended attributes, hard links, holes, whiteouts and
 * opaque directories stay what they are; content is shared with the original where the file
 * system can (reflink). The sources must not change meanwhile.
 */
#pragma once

#include <stdbool.h>

enum { LAYERCOPY_MAX = 64 };

/*
 * from: directories, topmost first. The first n are merged; those up to m are what will lie below:
 * a name that they do not have needs no whiteout, and in a directory that they do not have
 * overlayfs would show one as a file. to_fd/name is made; it must not be there. privileged: as
 * for rootful overlays (sys/attrs.h). 0, or -errno with what was made left to be removed; -ELOOP
 * for trees that are too deep, -E2BIG for too many files with several names.
 */
int layercopy(const int *from, int n, int m, int to_fd, const char *name, bool privileged);
