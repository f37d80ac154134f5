/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy a directory of the host into a layer, and fail closed. It copies only:
 * - what every user of the host may read: other-read on a file, other-read and -execute on each
 *   directory above it
 * - regular files without setuid and setgid, directories, and symbolic links as links
 *
 * Reads the host by descriptor and follows no link. So it copies exactly what it checked, even
 * while the tree changes.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

struct host_copy {
	int layer; /* root of the layer; paths below it are the host's paths */
	/* The reason to leave this entry out, or NULL. path: without the leading slash. */
	const char *(*leave_out)(const char *path);
	/* The reason to leave out a file with this content, or NULL. The member may be NULL. */
	const char *(*secret)(const char *path, struct str content);
	size_t file_max, total_max; /* bytes; larger files are left out */
	int entries_max;

	/* results */
	size_t bytes;
	int entries, left_out;
	struct buf *report; /* one line per entry left out: reason, tab, path; cut when full */

	/* working state */
	char path[LIMIT_PATH];
	struct buf content;
};

/* path: a directory, such as `etc`. Copies nothing if not everyone may read it. */
int host_copy_tree(struct host_copy *c, const char *path, struct err *e);
