/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a file or tree as a tar stream. Works by descriptor, and follows no symbolic link below the
 * path (nor the path itself, unless it ends with a slash). Needs three descriptors at any depth.
 *
 * A tree in use may change. A file that shrinks or grows while we read it is padded or cut to the
 * size in its header, and counted. Unreadable entries, sockets, fifos, devices and kernel file
 * systems are left out and counted.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "image/tree.h"

struct tar_pack {
	int out_fd;
	int dir_fd; /* path is relative to this; AT_FDCWD */
	const char *path;
	uint64_t max_bytes; /* tree_check_size() */
	struct tree_progress progress;
};

/*
 * Names in the stream start with tar_pack_top(path). Adds to *n. e->sys is EPIPE if the reader
 * left.
 */
int tar_pack(const struct tar_pack *o, struct tree_counts *n, struct err *e);

/* The last component of path; "." for "/", "." and "..". False if it is too long. */
bool tar_pack_top(const char *path, char out[256]);
