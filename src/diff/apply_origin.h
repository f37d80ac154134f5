/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file of the host a file of the sandbox was copied up from. Overlayfs keeps the handle of
 * the file in the layer below. If that is a sealed layer, the file there has a handle of its own,
 * and so on: origin_resolve() follows them down to the host's.
 */
#pragma once

#include <fcntl.h>

#include "diff/stack.h"

/* What identifies an inode for as long as it lives. */
struct origin {
	int type;
	unsigned n; /* 0: none */
	uint8_t bytes[MAX_HANDLE_SZ];
};

/* For each file of sealed layers that was copied up: itself, and what from. Sorted. */
struct origin_map {
	struct origin_row {
		struct origin is, was;
	} * v;
	size_t n, cap;
	bool loaded;
};

/* Of a name; "" is the directory itself. */
struct origin origin_handle(int dirfd, const char *name);
/* What the file at a path of one layer was copied up from. */
struct origin origin_of(const struct stack *s, int layer, const char *path);
int origin_compare(const void *a, const void *b);

/* The first `layers` of s. 0 or -errno. */
int origin_map_load(struct origin_map *m, const struct stack *s, int layers);
void origin_map_done(struct origin_map *m);
/* The host's; n is 0 where it was made in the sandbox. */
struct origin origin_resolve(const struct origin_map *m, struct origin was);
