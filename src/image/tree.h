/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by packing and unpacking of trees. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tree_counts {
	uint64_t files; /* everything except directories */
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
 * Open a path below dirfd; no component may be a symbolic link or leave dirfd. "" is dirfd itself.
 * The caller owns the descriptor. -errno; -ELOOP for a symbolic link.
 */
int tree_open(int dirfd, const char *path, int flags);

/*
 * LIMIT if the bytes counted so far plus `more` exceed max; 0: no limit. Counts a file's apparent
 * size, with holes.
 */
int tree_check_size(const struct tree_counts *n, uint64_t more, uint64_t max, struct err *e);

static inline void tree_report(const struct tree_progress *p, const struct tree_counts *n)
{
	if (p->fn)
		p->fn(p->ctx, n);
}
