/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the host file that a sandbox's file was copied up from. Overlayfs stores the handle of the
 * file in the layer below. If that is a sealed layer, the file there has its own handle, and so on:
 * origin_resolve() follows the handles down to the host file.
 */
#pragma once

#include <fcntl.h>

#include "diff/stack.h"

/* Identifies an inode for its lifetime. */
struct origin {
	int type;
	unsigned n; /* 0: none */
	uint8_t bytes[MAX_HANDLE_SZ];
};

/* For each copied-up file in sealed layers: its own handle, and its origin. Sorted. */
struct origin_map {
	struct origin_row {
		struct origin is, was;
	} * v;
	size_t n, cap;
	bool loaded;
};

/* The handle of a name; "" is the directory itself. */
struct origin origin_handle(int dirfd, const char *name);
/* The origin of the file at a path of one layer. */
struct origin origin_of(const struct stack *s, int layer, const char *path);
int origin_compare(const void *a, const void *b);

/* Loads the first `layers` of s. Returns 0 or -errno. */
int origin_map_load(struct origin_map *m, const struct stack *s, int layers);
void origin_map_done(struct origin_map *m);
/* The host file; n is 0 if the file was created in the sandbox. */
struct origin origin_resolve(const struct origin_map *m, struct origin was);
