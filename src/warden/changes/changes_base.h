/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What files of the host held when the sandbox first changed them, kept for merges: base/N/HASH
 * in the sandbox's directory, HASH being that of the path. Only of a --dir, only small files,
 * and only those that the host has not changed since the sandbox was made.
 */
#pragma once

#include <stdint.h>

struct changes_tree;
struct str;

struct changes_base {
	int dirfd;	  /* of the sandbox; borrowed */
	int mount;	  /* N */
	uint64_t made_ns; /* clock_real_ns() when it was made */
	uint32_t files;
	uint64_t bytes;
};

/* Save a name of the innermost directory as it is in the lower. Does nothing where it cannot. */
void changes_base_save(struct changes_tree *t, struct str name);
