/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extract a tar stream below a directory. The stream is hostile: whatever it names, links and
 * orders, nothing outside the directory is made, changed or read.
 *
 * Every name is resolved from the directory's descriptor without following any symbolic link.
 * Existing files are unlinked, never written through; only a directory may stay, and keeps its
 * mode. New directories stay 0700 until the end. A file gets its name when it is complete, and
 * blocks of zeros become holes (newfile.h).
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
	 * The name that the stream's top entry must have, or NULL for any. A stream that should
	 * hold `b` must not bring `.bashrc` too.
	 */
	const char *want;
	/*
	 * The new name of the top entry; the stream may then have only one. If the top is ".", this
	 * directory is made and the entries go into it. NULL: all entries keep their names.
	 */
	const char *as;
	mode_t mode_mask;   /* 0777 to drop set-id bits */
	bool owners;	    /* restore uid and gid */
	uint64_t max_bytes; /* tree_check_size() */
	struct tree_progress progress;
};

/*
 * Reads to the end of the stream. On failure the unfinished file is removed, and completed files
 * stay. A truncated stream gives e->sys == ENODATA. Adds to *n.
 */
int tar_unpack(const struct tar_unpack *o, struct tree_counts *n, struct err *e);
