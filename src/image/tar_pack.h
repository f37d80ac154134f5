/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a file or a tree as a tar stream. Works by descriptor, follows no symbolic link
 * below the path (nor the path itself, unless it ends with a slash), and holds three
 * descriptors however deep the tree is.
 *
 * A tree in use changes under our hands: a file that shrinks or grows while it is read is
 * padded or cut to the size in its header and counted; what cannot be read is left out and
 * counted; sockets, fifos, devices and kernel file systems are left out and counted.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "image/tree.h"

struct tar_pack {
	int out_fd;
	int dir_fd; /* what path is relative to; AT_FDCWD */
	const char *path;
	struct tree_progress progress;
};

/* Names in the stream begin with tar_pack_top(path). Adds to *n. e->sys is EPIPE when the reader
 * left. */
int tar_pack(const struct tar_pack *o, struct tree_counts *n, struct err *e);

/* The last component of path; "." where that is no name: "/", ".", "..". False: it is too long. */
bool tar_pack_top(const char *path, char out[256]);
