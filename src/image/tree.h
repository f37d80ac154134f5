/* SPDX-License-Identifier: Apache-2.0 */
/* What packing and unpacking of trees share. */
#pragma once

#include <stdint.h>

struct tree_counts {
	uint64_t files; /* everything that is not a directory */
	uint64_t dirs;
	uint64_t bytes;	     /* of content */
	uint64_t skipped;    /* sockets, fifos, devices; attributes that could not be set */
	uint64_t changed;    /* files whose size changed while they were read */
	uint64_t unreadable; /* files and directories that could not be read */
	char unreadable_first[256];
};

struct tree_progress {
	/* Called after each entry and each chunk of data; or NULL. */
	void (*fn)(void *ctx, const struct tree_counts *n);
	void *ctx;
};

/*
 * Open a path below dirfd; no component may be a symbolic link or lead out of dirfd. "" is
 * dirfd itself. The caller owns the descriptor; -errno, -ELOOP for a symbolic link.
 */
int tree_open(int dirfd, const char *path, int flags);

static inline void tree_report(const struct tree_progress *p, const struct tree_counts *n)
{
	if (p->fn)
		p->fn(p->ctx, n);
}
