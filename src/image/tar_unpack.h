/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extract a tar stream below a directory. The stream is hostile: it may name, link and order
 * things as it likes, and still nothing outside of the directory is made, changed or read.
 *
 * Every name is resolved from the directory's descriptor without following any symbolic
 * link, whoever made it. What exists is unlinked, never written through; only a directory
 * may stay, and keeps its mode. Directories that we make stay 0700 until the end.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "image/tree.h"

struct tar_unpack {
	int in_fd;
	int dir_fd;
	/*
	 * The name that the stream's top entry must have, or NULL for any. Who asks for `b` must
	 * not be given `.bashrc` beside it.
	 */
	const char *want;
	/*
	 * The name that the top entry gets; the stream may then have only one. Where the top is
	 * ".", this directory is made and the entries go into it. NULL: all keep their names.
	 */
	const char *as;
	mode_t mode_mask; /* 0777 where set-id bits shall not arrive */
	bool owners;	  /* restore uid and gid */
	struct tree_progress progress;
};

/*
 * Reads to the end of the stream. On failure the file that was being written is removed and
 * what was complete stays. A stream that ends early gives e->sys == ENODATA. Adds to *n.
 */
int tar_unpack(const struct tar_unpack *o, struct tree_counts *n, struct err *e);
