/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a directory of the host into a layer, fail closed: only what every user of the
 * host may read (other-read on a file, other-read and -execute on each directory above it),
 * only regular files without setuid and setgid, directories, and symbolic links as links.
 * The host is read by descriptor and no link is followed, so what is checked is what is
 * copied even while somebody changes the tree.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

struct host_copy {
	int layer; /* root of the layer; paths below it are those of the host */
	/* Why this entry must stay out, or NULL. path: without the leading slash. */
	const char *(*leave_out)(const char *path);
	/* Why a file with this content must stay out, or NULL. The member may be NULL. */
	const char *(*secret)(const char *path, struct str content);
	size_t file_max, total_max; /* bytes; what is larger stays out */
	int entries_max;

	/* results */
	size_t bytes;
	int entries, left_out;
	struct buf *report; /* one line for each entry left out: reason, tab, path; cut when full */

	/* at work */
	char path[LIMIT_PATH];
	struct buf content;
};

/* path: a directory, such as `etc`. Where it is none that all may read, nothing is copied. */
int host_copy_tree(struct host_copy *c, const char *path, struct err *e);
